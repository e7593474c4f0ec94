// Every migration by name, one file per noun. Names sort; a later change to a noun is a new file. Never edit one that was released.
import type { Kysely } from "kysely";
import type { DialectName } from "../dialect.ts";
import * as setting from "./001-setting.ts";

export interface MigrationStep {
  up(db: Kysely<unknown>, dialect: DialectName): Promise<void>;
}

export const migrations: Readonly<Record<string, MigrationStep>> = {
  "001-setting": setting,
};
