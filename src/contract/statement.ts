// What db:query takes: one statement that neither begins nor ends a transaction nor changes its session. Everything else is the database's
// to judge.

/** Words that would end or change the transaction that the broker holds, or hide such a statement from this check. */
const CONTROL = new Set([
  ...["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare", "execute"],
  ...["deallocate", "discard", "reset", "lock", "unlock", "use", "handler", "xa", "listen", "unlisten", "load"],
  // What MariaDB takes for a program: it may end the transaction, change the session and write, all in one statement.
  ...["if", "case", "for", "while", "repeat", "loop"],
  ...["attach", "detach", "vacuum", "set", "copy", "pragma", "flush", "shutdown", "kill", "install", "uninstall"],
]);

/** What request.db.transaction does by itself; inside of one, and for all else, it would be no way out. */
const BOUNDS = new Set(["begin", "start", "commit", "end", "rollback", "abort"]);

/** Where the databases differ in what ends a comment: PostgreSQL's nest, and there a carriage return ends a line too. */
const READINGS = [
  { nested: false, line: /\n/g },
  { nested: false, line: /[\r\n]/g },
  { nested: true, line: /\n/g },
  { nested: true, line: /[\r\n]/g },
] as const;

/** Why the statement is not sent: transaction control and session settings are not the handler's. null where it may be. */
export function statementRefusal(sql: string): string | null {
  for (const reading of READINGS) {
    const word = wordOf(sql, reading);
    if (word === EXECUTABLE) return "executable comments cannot be sent through db:query";
    if (CONTROL.has(word))
      return `${word.toUpperCase()} cannot be sent through db:query${BOUNDS.has(word) ? "; use request.db.transaction" : ""}`;
  }
  return null;
}

/** In lower case, behind comments and brackets; empty where there is none. */
export function firstWord(sql: string): string {
  return wordOf(sql, READINGS[0]);
}

/** The statement without the comments and brackets before it. */
export function behindComments(sql: string): string {
  return behind(sql, READINGS[0]);
}

const EXECUTABLE = "/*!";

function wordOf(sql: string, reading: (typeof READINGS)[number]): string {
  const statement = behind(sql, reading);
  if (/^\/\*M?!/.test(statement)) return EXECUTABLE;
  return /^[A-Za-z_]+/.exec(statement)?.[0]?.toLowerCase() ?? "";
}

function behind(sql: string, { nested, line }: (typeof READINGS)[number]): string {
  let at = 0;
  for (;;) {
    const space = /^[\s;(]+/.exec(sql.slice(at));
    if (space) at += space[0].length;
    else if (sql.startsWith("--", at) || sql[at] === "#") {
      line.lastIndex = at;
      if (!line.test(sql)) return "";
      at = line.lastIndex;
    } else if (sql.startsWith("/*", at) && !/^\/\*M?!/.test(sql.slice(at, at + 4))) at = afterComment(sql, at, nested);
    else return sql.slice(at);
  }
}

function afterComment(sql: string, start: number, nested: boolean): number {
  let depth = 0;
  for (let at = start; at < sql.length; ) {
    if (sql.startsWith("/*", at) && (nested || depth === 0)) {
      depth++;
      at += 2;
    } else if (sql.startsWith("*/", at)) {
      depth--;
      at += 2;
      if (depth === 0) return at;
    } else at++;
  }
  return sql.length;
}
