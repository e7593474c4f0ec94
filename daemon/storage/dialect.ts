// Where the two dialects differ for a migration: the only place that needs to know.
import type { ColumnDataType, ColumnDefinitionBuilder } from "kysely";

export type DialectName = "sqlite" | "postgres";

/** The type and the definition of a primary key that counts upwards: `addColumn("sequence", ...sequence(dialect))`. */
export function sequence(
  dialect: DialectName,
): [ColumnDataType, (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder] {
  return dialect === "sqlite"
    ? ["integer", (column) => column.primaryKey().autoIncrement()]
    : ["bigint", (column) => column.primaryKey().generatedAlwaysAsIdentity()];
}
