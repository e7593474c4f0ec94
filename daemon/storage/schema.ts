// The types of every table, assembled from tables/<noun>.ts. Kysely sees the database through this interface.
import type { Kysely } from "kysely";
import type { SettingTables } from "./tables/setting.ts";

export interface Database extends SettingTables {}

/** What a unit of work gets: the database, inside its own savepoint (SQLite) or transaction (Postgres). */
export type Db = Kysely<Database>;
