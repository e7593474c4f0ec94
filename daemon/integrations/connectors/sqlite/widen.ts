// A wider declared type for columns of a table. SQLite has no ALTER COLUMN; that a declaration is edited where no stored value has to
// change is its documented way (lang_altertable.html, 8: "Making Other Kinds Of Table Schema Changes").
import type { DatabaseSync } from "node:sqlite";
import type { Column } from "../../engine/types.ts";
import { quote, type SqliteTable } from "./catalog.ts";
import { affinityOf, declare } from "./types.ts";

/** Inside the write transaction. A declaration that we did not write stays as it is. */
export function widenTypes(db: DatabaseSync, table: SqliteTable, wider: readonly Column[]): void {
  const edits = wider.flatMap((column) => {
    const declared = table.columns.find(({ name }) => name === column.name)?.declared ?? "";
    // Values would be stored and compared in another way.
    if (affinityOf(declared) !== affinityOf(declare(column))) return [];
    const ours = declared.startsWith("TEXT ") ? quote(declared) : declared;
    return [{ before: `${quote(column.name)} ${ours}`, after: `${quote(column.name)} ${declare(column)}` }];
  });
  if (edits.length === 0) return;
  const { schema_version: version } = db.prepare("PRAGMA schema_version").get() as { schema_version: number };
  db.enableDefensive(false);
  db.exec("PRAGMA writable_schema = ON");
  const edit = db.prepare(
    "UPDATE sqlite_schema SET sql = replace(replace(sql, '(' || ?1, '(' || ?2), ', ' || ?1, ', ' || ?2) WHERE type = 'table' AND name = ?3",
  );
  for (const { before, after } of edits) edit.run(before, after, table.name);
  db.exec(`PRAGMA schema_version = ${version + 1}; PRAGMA writable_schema = RESET`);
  db.enableDefensive(true);
}
