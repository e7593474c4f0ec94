// Deployed controllers: immutable versions, the aliases that point at them, and each controller's small state.
import { MagicError } from "#contract/errors.ts";
import { kvLimits } from "#contract/runtime-limits.ts";
import type { Db } from "../schema.ts";
import type { ControllerAliasTable, ControllerVersionTable } from "../tables/controller.ts";

/** A version without its code. */
export type StoredVersion = Omit<ControllerVersionTable, "code" | "map">;

export interface StoredControllers {
  readonly versions: StoredVersion[];
  readonly aliases: ControllerAliasTable[];
}

/** Every controller, or one. */
export async function list(db: Db, { name }: { name: string | null }): Promise<StoredControllers> {
  let versions = db
    .selectFrom("controller_version")
    .select(["name", "version", "digest", "contract", "created_at"])
    // As the index has them; in the order of the time alone the code of every version is read.
    .orderBy("name")
    .orderBy("created_at");
  let aliases = db.selectFrom("controller_alias").selectAll();
  if (name !== null) {
    versions = versions.where("name", "=", name);
    aliases = aliases.where("controller", "=", name);
  }
  return { versions: await versions.execute(), aliases: await aliases.execute() };
}

/** A version with its code, or null. */
export async function read(
  db: Db,
  { name, version }: { name: string; version: string },
): Promise<ControllerVersionTable | null> {
  const row = await db
    .selectFrom("controller_version")
    .selectAll()
    .where("name", "=", name)
    .where("version", "=", version)
    .executeTakeFirst();
  return row ?? null;
}

/** The version's digest, or null: its code stays where it is. */
async function digestOf(db: Db, { name, version }: { name: string; version: string }): Promise<string | null> {
  const row = await db
    .selectFrom("controller_version")
    .select("digest")
    .where("name", "=", name)
    .where("version", "=", version)
    .executeTakeFirst();
  return row?.digest ?? null;
}

/** Stores a version and points an alias at it, or offers it as the alias's candidate. The same version with another digest is a conflict. */
export async function deploy(
  db: Db,
  { row, alias, percent, at }: { row: ControllerVersionTable; alias: string; percent: number; at: string },
): Promise<void> {
  const known = await digestOf(db, row);
  if (known !== null && known !== row.digest)
    throw new MagicError("conflict", `${row.name}@${row.version} is deployed with another digest: raise the version`);
  if (known === null) await db.insertInto("controller_version").values(row).execute();
  await point(db, { name: row.name, alias, version: row.version, percent, at });
}

/** Points an alias at a version (percent 100), or gives the version that share of the alias's calls. */
export async function point(
  db: Db,
  change: { name: string; alias: string; version: string; percent: number; at: string },
): Promise<void> {
  const { name, alias, version, percent, at } = change;
  if ((await digestOf(db, { name, version })) === null)
    throw new MagicError("controller_not_found", `${name} has no version ${version}`);
  const current = await aliasOf(db, name, alias);
  const whole = percent >= 100 || !current;
  const previous = !current || current.version === version ? (current?.previous ?? null) : current.version;
  const next: ControllerAliasTable = {
    controller: name,
    alias,
    version: whole ? version : current.version,
    candidate: whole ? null : version,
    percent: whole ? 0 : percent,
    previous: whole ? previous : current.previous,
    updated_at: at,
  };
  await put(db, next);
}

/** Gives up a candidate, or else points the alias back at what it pointed at before. */
export async function rollback(
  db: Db,
  { name, alias, at }: { name: string; alias: string; at: string },
): Promise<ControllerAliasTable> {
  const current = await aliasOf(db, name, alias);
  if (!current) throw new MagicError("controller_not_found", `${name} has no alias ${alias}`);
  if (current.candidate === null && current.previous === null)
    throw new MagicError("conflict", `${name}: ${alias} has nothing to go back to`);
  const next: ControllerAliasTable = {
    ...current,
    version: current.candidate === null ? (current.previous ?? current.version) : current.version,
    previous: current.candidate === null ? current.version : current.previous,
    candidate: null,
    percent: 0,
    updated_at: at,
  };
  await put(db, next);
  return next;
}

/** Removes one version that no alias points at, or (version null) the controller with everything of it. True where something was there. */
export async function remove(db: Db, { name, version }: { name: string; version: string | null }): Promise<boolean> {
  let rows = db.deleteFrom("controller_version").where("name", "=", name);
  if (version !== null) {
    const { aliases } = await list(db, { name });
    const holder = aliases.find((alias) => alias.version === version || alias.candidate === version);
    if (holder) throw new MagicError("conflict", `${name}@${version} is what ${holder.alias} points at`);
    rows = rows.where("version", "=", version);
    await db
      .updateTable("controller_alias")
      .set({ previous: null })
      .where("controller", "=", name)
      .where("previous", "=", version)
      .execute();
  } else {
    await db.deleteFrom("controller_alias").where("controller", "=", name).execute();
    await db.deleteFrom("controller_key").where("controller", "=", name).execute();
  }
  const { numDeletedRows } = await rows.executeTakeFirst();
  return numDeletedRows > 0n;
}

export async function getKey(
  db: Db,
  { controller, environment, key, now }: { controller: string; environment: string; key: string; now: string },
): Promise<string | null> {
  const row = await db
    .selectFrom("controller_key")
    .select(["value", "expires_at"])
    .where("controller", "=", controller)
    .where("environment", "=", environment)
    .where("key", "=", key)
    .executeTakeFirst();
  return !row || (row.expires_at !== null && row.expires_at <= now) ? null : row.value;
}

export async function setKey(
  db: Db,
  row: { controller: string; environment: string; key: string; value: string; expires_at: string | null; now: string },
): Promise<void> {
  const { now, ...values } = row;
  const { controller, environment } = row;
  await db
    .insertInto("controller_key")
    .values(values)
    .onConflict((conflict) =>
      conflict
        .columns(["controller", "environment", "key"])
        .doUpdateSet({ value: row.value, expires_at: row.expires_at }),
    )
    .execute();
  const counted = await db
    .selectFrom("controller_key")
    .select((select) => select.fn.countAll<number | bigint | string>().as("count"))
    .where("controller", "=", controller)
    .where("environment", "=", environment)
    .executeTakeFirstOrThrow();
  // A handler that loops must not fill the disk.
  if (Number(counted.count) <= kvLimits.keys) return;
  const { numDeletedRows } = await db
    .deleteFrom("controller_key")
    .where("controller", "=", controller)
    .where("environment", "=", environment)
    .where("expires_at", "<=", now)
    .executeTakeFirst();
  if (Number(counted.count) - Number(numDeletedRows) > kvLimits.keys)
    throw new MagicError("limit_exceeded", `${controller} holds ${kvLimits.keys} keys, and no more fit`);
}

export async function deleteKey(
  db: Db,
  { controller, environment, key }: { controller: string; environment: string; key: string },
): Promise<void> {
  await db
    .deleteFrom("controller_key")
    .where("controller", "=", controller)
    .where("environment", "=", environment)
    .where("key", "=", key)
    .execute();
}

async function aliasOf(db: Db, name: string, alias: string): Promise<ControllerAliasTable | undefined> {
  return await db
    .selectFrom("controller_alias")
    .selectAll()
    .where("controller", "=", name)
    .where("alias", "=", alias)
    .executeTakeFirst();
}

async function put(db: Db, row: ControllerAliasTable): Promise<void> {
  const { controller: _controller, alias: _alias, ...rest } = row;
  await db
    .insertInto("controller_alias")
    .values(row)
    .onConflict((conflict) => conflict.columns(["controller", "alias"]).doUpdateSet(rest))
    .execute();
}
