// A statement on its way to the driver: checked, its placeholders in the database's form.
import { MagicError } from "#contract/errors.ts";
import { statementRefusal } from "#contract/statement.ts";

/** @throws `invalid_request` for transaction control and session settings: db.transaction is there for the first. */
export function checkStatement(sql: string): void {
  const refusal = statementRefusal(sql);
  if (refusal !== null) throw new MagicError("invalid_request", refusal);
}

/**
 * What is quoted or a comment, and placeholders. A doubled quote is two texts side by side; what nothing closes reaches to the end, which
 * is not looked for at each of its quotes. To SQLite a backslash is a character like any other, and brackets quote; to MySQL `1--1` is 2.
 * A name may hold a `$` itself. Placeholders with names are SQLite's alone.
 */
const PARTS = {
  mysql:
    /'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|`[^`]*`?|(?:--(?=\s|$)|#)[^\n]*|\/\*.*?(?:\*\/|$)|[a-z_\u0080-\uffff][\w$\u0080-\uffff]*|\$(\d+)/gis,
  sqlite:
    /'[^']*'?|"[^"]*"?|`[^`]*`?|\[[^\]]*\]?|--[^\n]*|\/\*.*?(?:\*\/|$)|[a-z_\u0080-\uffff][\w$\u0080-\uffff]*|\$(\d+)(?![\w$\u0080-\uffff])|(?<!:)[:@$][\w$\u0080-\uffff]+/gis,
};

/**
 * `$1` as `?`, for databases that know only the latter; quoted parts and comments stay as they are.
 * @throws `invalid_request` where one has no value: the database would take it for null.
 */
export function questionMarks(
  dialect: keyof typeof PARTS,
  sql: string,
  params: readonly unknown[],
): { sql: string; params: readonly unknown[] } {
  const order: unknown[] = [];
  let numbered = false;
  const text = sql.replace(PARTS[dialect], (match, number: string | undefined) => {
    if (number === undefined && /^[:@$]/.test(match))
      throw new MagicError(
        "invalid_request",
        `the placeholder ${match} has a name: parameters are a list, write $1 or ?`,
      );
    if (number === undefined) return match;
    numbered = true;
    if (Number(number) < 1 || Number(number) > params.length)
      throw new MagicError("invalid_request", `the statement has $${number}, and ${params.length} parameters came`);
    order.push(params[Number(number) - 1]);
    return "?";
  });
  return numbered ? { sql: text, params: order } : { sql, params };
}
