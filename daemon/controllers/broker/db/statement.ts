// Looks at a statement's first word and its placeholders; everything else is the database's to judge.
import { MagicError } from "#contract/errors.ts";

/** Words that would end or change the transaction that the broker holds, or hide such a statement from this check. */
const CONTROL = new Set([
  ...["begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare", "execute"],
  ...["deallocate", "discard", "reset", "lock", "unlock", "use", "handler", "xa", "listen", "unlisten", "load"],
  ...["attach", "detach", "vacuum", "set", "copy", "pragma", "flush", "shutdown", "kill", "install", "uninstall"],
]);

/** @throws `invalid_request` for transaction control and session settings: db.transaction is there for the first. */
export function checkStatement(sql: string): void {
  const word = firstWord(sql);
  if (!CONTROL.has(word)) return;
  throw new MagicError(
    "invalid_request",
    `${word.toUpperCase()} cannot be sent through db:query; use request.db.transaction`,
  );
}

function firstWord(sql: string): string {
  let at = 0;
  for (;;) {
    const space = /^[\s;(]+/.exec(sql.slice(at));
    if (space) at += space[0].length;
    else if (sql.startsWith("--", at) || sql[at] === "#") {
      const end = sql.indexOf("\n", at);
      if (end < 0) return "";
      at = end + 1;
    } else if (sql.startsWith("/*!", at) || sql.startsWith("/*M!", at))
      throw new MagicError("invalid_request", "executable comments cannot be sent through db:query");
    else if (sql.startsWith("/*", at)) at = afterComment(sql, at);
    else return /^[A-Za-z_]+/.exec(sql.slice(at))?.[0]?.toLowerCase() ?? "";
  }
}

/** Block comments nest in PostgreSQL; a shallower reading elsewhere only makes this one stricter. */
function afterComment(sql: string, start: number): number {
  let depth = 0;
  for (let at = start; at < sql.length; ) {
    if (sql.startsWith("/*", at)) {
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

/** `$1` as `?`, for databases that know only the latter; quoted parts and comments stay as they are. */
export function questionMarks(sql: string, params: readonly unknown[]): { sql: string; params: readonly unknown[] } {
  const order: unknown[] = [];
  let numbered = false;
  const parts = /'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`[^`]*`|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\d+)/g;
  const text = sql.replace(parts, (match, number: string | undefined) => {
    if (number === undefined) return match;
    numbered = true;
    order.push(params[Number(number) - 1]);
    return "?";
  });
  return numbered ? { sql: text, params: order } : { sql, params };
}
