// Definitions of a destination's table: made, widened, keyed anew. MySQL commits at each of them, so all come before the transaction of the rows.
import { MagicError } from "#contract/errors.ts";
import { refuseAlike } from "../../engine/alike.ts";
import { DELETED_AT, type WritePlan } from "../../engine/destination.ts";
import { planChanges, refuseComputed } from "../../engine/evolution.ts";
import { outlived } from "../../engine/keys.ts";
import type { Column } from "../../engine/types.ts";
import { declare, type MysqlColumn, type MysqlTable } from "./catalog.ts";
import { ident, type MysqlLink, unescaped } from "./connect.ts";
import { ensureStateTable } from "./state-table.ts";

/** Makes the table, or what it lacks of the plan. Answers with the columns that it made wider. */
export async function prepareTable(
  link: MysqlLink,
  database: string,
  table: string,
  plan: WritePlan,
  existing: MysqlTable | null,
): Promise<readonly Column[]> {
  checkNames(table, plan.columns);
  refuseAlike(plan.columns, existing?.columns ?? [], `${existing?.database}.${existing?.name}`, "MySQL");
  await ensureStateTable(link, database);
  const mark = `${ident(DELETED_AT)} DATETIME(6) NULL`;
  const soft = plan.deletes === "soft";
  if (!existing) {
    const columns = plan.columns.map(
      (column) =>
        `${ident(column.name)} ${declare(column, plan.primaryKey.includes(column.name), link.keyCollation)}${plan.primaryKey.includes(column.name) ? " NOT NULL" : " NULL"}`,
    );
    if (soft) columns.push(mark);
    if (plan.primaryKey.length > 0) columns.push(`PRIMARY KEY (${plan.primaryKey.map(ident).join(", ")})`);
    await link.run(
      `CREATE TABLE ${table} (${columns.join(", ")}) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    );
    return [];
  }
  const computed = existing.columns.filter(({ generated }) => generated).map(({ name }) => name);
  refuseComputed(plan.columns, computed, `${existing.database}.${existing.name}`);
  const there = existing.columns.map((column) => asMade(column, plan.columns));
  const changes = planChanges(plan.columns, there, `${existing.database}.${existing.name}`);
  const { add } = changes;
  // What DECIMAL cannot hold would be a text: a column of numbers stays one, and refuses the values that do not fit it.
  const widen = changes.widen.filter(
    (column) => column.type.kind !== "decimal" || declare(column, false, link.keyCollation).startsWith("DECIMAL"),
  );
  const kept = widen.length > 0 ? await attributesOf(link, table, existing) : null;
  const steps = [
    ...add.map((column) => `ADD COLUMN ${ident(column.name)} ${declare(column, false, link.keyCollation)} NULL`),
    ...widen.map(
      (column) =>
        `MODIFY COLUMN ${ident(column.name)} ${declare(column, plan.primaryKey.includes(column.name), link.keyCollation)}${kept?.get(column.name) ?? ""}`,
    ),
    ...(soft && !existing.columns.some(({ name }) => name === DELETED_AT) ? [`ADD COLUMN ${mark}`] : []),
  ];
  if (steps.length > 0) await link.runBetweenReaders(`ALTER TABLE ${table} ${steps.join(", ")}`);
  if (outlived(existing.primaryKey, plan)) await changeKey(link, table, existing, plan);
  return widen;
}

const NAME_LENGTH = 64;

// MySQL tells what is wrong, of the first of them not even that ("Invalid utf8mb4 character string"), and never what to do.
function checkNames(table: string, columns: readonly Column[]): void {
  const names = columns.map(({ name }) => name);
  const named = (name: string) => JSON.stringify(name);
  const wrong = [
    ...[table, ...names]
      .filter((name) => /[\u{10000}-\u{10ffff}]/u.test(name))
      .map((name) => `MySQL's names hold no characters beyond U+FFFF, as ${named(name)} does`),
    ...names
      .filter((name) => name.length > NAME_LENGTH)
      .map((name) => `MySQL's names have at most ${NAME_LENGTH} characters, ${named(name)} has ${name.length}`),
    ...names.filter((name) => /^$|\0|[ \t-\r]$/.test(name)).map((name) => `MySQL can name no column ${named(name)}`),
  ];
  if (wrong[0] !== undefined)
    throw new MagicError(
      "validation_failed",
      `${wrong[0]}: choose another one (for a column by a mapping, or leave it out).`,
    );
}

async function changeKey(link: MysqlLink, table: string, existing: MysqlTable, plan: WritePlan): Promise<void> {
  const { primaryKey } = plan;
  // Columns of the former key that no value comes for any more.
  const left = existing.columns.filter(
    ({ name }) => existing.primaryKey.includes(name) && plan.columns.every((column) => column.name !== name),
  );
  const said = left.length > 0 ? await attributesOf(link, table, existing) : null;
  const steps = [
    "DROP PRIMARY KEY",
    ...(primaryKey.length > 0 ? [`ADD PRIMARY KEY (${primaryKey.map(ident).join(", ")})`] : []),
    ...left.flatMap(({ name, declared, generated }) => {
      const attributes = said?.get(name) ?? "";
      // One that fills itself in stays as it is.
      const freed = attributes.replace(/^([^']*?) NOT NULL(?! (?:AUTO_INCREMENT|DEFAULT))/i, "$1 NULL");
      return generated || freed === attributes ? [] : [`MODIFY COLUMN ${ident(name)} ${unescaped(declared)}${freed}`];
    }),
  ];
  // Where the rows that are still there do not fit the new key the old one stays, and refuses what it refuses.
  await link.runBetweenReaders(`ALTER TABLE ${table} ${steps.join(", ")}`).catch(() => {});
}

// What stands behind each column's type (NOT NULL, AUTO_INCREMENT, a default, a comment): MODIFY drops what it does not say again.
async function attributesOf(link: MysqlLink, table: string, { columns }: MysqlTable): Promise<Map<string, string>> {
  const [made] = await link.rows(`SHOW CREATE TABLE ${table}`);
  const lines = (made?.["Create Table"] ?? "").split("\n");
  const found = new Map<string, string>();
  for (const { name, declared } of columns) {
    const start = `  ${ident(name)} ${declared}`.toLowerCase();
    const line = lines.find((one) => one.toLowerCase().startsWith(start));
    if (line) found.set(name, inOurMode(line.slice(start.length).replace(/,$/, "")));
  }
  return found;
}

// A server tells texts with backslashes before what is special.
function inOurMode(attributes: string): string {
  return attributes.replace(/\b(DEFAULT|COMMENT) '(?:[^'\\]|\\.|'')*'/g, unescaped);
}

// What MySQL lacks and `declare` makes of it: booleans are TINYINT, instants DATETIME in UTC.
function asMade(there: MysqlColumn, columns: readonly Column[]): Column {
  const type = columns.find(({ name }) => name === there.name)?.type;
  const bool = type?.kind === "bool" && there.declared.startsWith("tinyint");
  const instant = type?.kind === "timestamp" && type.zone && there.declared.startsWith("datetime");
  return bool || instant ? { ...there, type } : there;
}
