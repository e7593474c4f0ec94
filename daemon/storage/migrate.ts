// Brings a database to the newest schema. The caller sees to it that only one migrates at a time, and that all of it is one transaction.
import type { Kysely } from "kysely";
import { Migrator } from "kysely/migration";
import { MagicError } from "#contract/errors.ts";
import { MIGRATION_TABLE } from "#contract/migrations.ts";
import type { DialectName } from "./dialect.ts";
import { translate } from "./failure.ts";
import { up as auditLog } from "./migrations/012-audit.ts";
import { migrations } from "./migrations/index.ts";
import type { Db } from "./schema.ts";

/** @throws MagicError `state_unusable` when a newer version made the database, or another program; what the database says otherwise. */
export async function migrate(db: Db, dialect: DialectName): Promise<void> {
  const migrator = new Migrator({
    db: db as unknown as Kysely<unknown>,
    migrationTableName: MIGRATION_TABLE,
    migrationLockTableName: `${MIGRATION_TABLE}_lock`,
    // A noun's first migration may land after another's tenth.
    allowUnorderedMigrations: true,
    provider: {
      getMigrations: async () =>
        Object.fromEntries(
          Object.entries(migrations).map(([name, step]) => [
            name,
            { up: (database: Kysely<unknown>) => step.up(database, dialect) },
          ]),
        ),
    },
  });
  const { error } = await migrator.migrateToLatest();
  if (error === undefined) {
    // Whoever may write to a file can take a table out of it; that must not keep the daemon from starting and from saying what is missing.
    if (dialect === "sqlite") await auditLog(db as unknown as Kysely<unknown>);
    return;
  }
  if (/previously executed migration .* is missing/.test(String(error)))
    throw new MagicError("state_unusable", "a newer version of magic made this database, which was left as it is", {
      cause: error,
      extra: { next: "Upgrade magic." },
    });
  // All of ours are made within the transaction that notes them.
  if (/already exists$/.test((error as Error).message))
    throw new MagicError("state_unusable", `the database holds another program's tables: ${(error as Error).message}`, {
      cause: error,
      extra: { next: "Give magic a database of its own; these were left as they are." },
    });
  throw translate(error) ?? error;
}
