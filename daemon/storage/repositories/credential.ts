// Keys, clients and gateway tokens, and their secrets. Who may make and change which is decided by the caller.
import { DAY_MS } from "#shared/clock.ts";
import { type Page, paged, type Slice, slice } from "../page.ts";
import type { Db } from "../schema.ts";
import type { CredentialSecretTable, CredentialTable } from "../tables/credential.ts";

// There are two where a key is rolled now and then. One that is rolled by the minute has many in overlap, and all of them work.
const SHOWN_SECRETS = 10;

export interface CredentialRow extends CredentialTable {
  /** Newest first, ten at most; those whose overlap has ended are left out. */
  readonly secrets: readonly CredentialSecretTable[];
}

export interface NewSecretRow {
  readonly id: string;
  readonly digest: string;
}

export interface NewCredential extends Omit<CredentialTable, "revoked_at"> {
  readonly secret: NewSecretRow;
}

export async function create(db: Db, { secret, ...credential }: NewCredential): Promise<CredentialRow> {
  const row = { ...credential, revoked_at: null };
  await db.insertInto("credential").values(row).execute();
  return { ...row, secrets: [await addSecret(db, credential.id, secret, credential.created_at)] };
}

/** One by its id; undefined where there is none of this kind, or of this environment where one is given. */
export async function get(
  db: Db,
  { kind, id, environment, now }: { kind: string; id: string; environment?: string | undefined; now: string },
): Promise<CredentialRow | undefined> {
  let query = db.selectFrom("credential").selectAll().where("id", "=", id).where("kind", "=", kind);
  if (environment !== undefined) query = query.where("environment", "=", environment);
  const row = await query.executeTakeFirst();
  return row && { ...row, secrets: await secretsOf(db, id, now) };
}

export interface ListCredentials {
  readonly kind: string;
  readonly environment?: string | undefined;
  readonly page: Page;
  readonly now: string;
}

export async function list(db: Db, { kind, environment, page, now }: ListCredentials): Promise<Slice<CredentialRow>> {
  let query = db.selectFrom("credential").selectAll().where("kind", "=", kind);
  if (environment !== undefined) query = query.where("environment", "=", environment);
  const { rows, more } = slice(await paged(query, page).execute(), page, (row) => row);
  return {
    rows: await Promise.all(rows.map(async (row) => ({ ...row, secrets: await secretsOf(db, row.id, now) }))),
    more,
  };
}

/** A secret with the credential that it belongs to, whatever their state: for authentication. */
export async function bySecret(
  db: Db,
  { secretId }: { secretId: string },
): Promise<{ credential: CredentialTable; secret: CredentialSecretTable } | undefined> {
  const secret = await db.selectFrom("credential_secret").selectAll().where("id", "=", secretId).executeTakeFirst();
  if (!secret) return undefined;
  const credential = await db
    .selectFrom("credential")
    .selectAll()
    .where("id", "=", secret.credential)
    .executeTakeFirstOrThrow();
  return { credential, secret };
}

/** A credential by its id alone: for access tokens. */
export async function byId(db: Db, { id }: { id: string }): Promise<CredentialTable | undefined> {
  return db.selectFrom("credential").selectAll().where("id", "=", id).executeTakeFirst();
}

export interface RollCredential {
  readonly kind: string;
  readonly id: string;
  readonly secret: NewSecretRow;
  readonly now: string;
  /** When the secrets before it end. */
  readonly overlapEnds: string;
}

/** Adds a secret and ends the others; undefined where there is no such credential, or it is revoked. */
export async function roll(db: Db, args: RollCredential): Promise<CredentialRow | undefined> {
  const found = await get(db, args);
  if (!found || found.revoked_at !== null) return undefined;
  await db
    .updateTable("credential_secret")
    .set({ expires_at: args.overlapEnds })
    .where("credential", "=", args.id)
    .where((where) => where.or([where("expires_at", "is", null), where("expires_at", ">", args.overlapEnds)]))
    .execute();
  // Ended ones are of no use to anybody a day later; until then their error can say "expired".
  const dayAgo = new Date(Date.parse(args.now) - DAY_MS).toISOString();
  await db.deleteFrom("credential_secret").where("credential", "=", args.id).where("expires_at", "<", dayAgo).execute();
  await addSecret(db, args.id, args.secret, args.now);
  return get(db, args);
}

/** Revokes; false where there is no such credential, or it is revoked already. */
export async function revoke(db: Db, args: { kind: string; id: string; now: string }): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("credential")
    .set({ revoked_at: args.now })
    .where("id", "=", args.id)
    .where("kind", "=", args.kind)
    .where("revoked_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** When secrets were last used; later times win. */
export async function touch(db: Db, { used }: { used: readonly (readonly [id: string, at: string])[] }): Promise<void> {
  for (const [id, at] of used)
    await db
      .updateTable("credential_secret")
      .set({ last_used_at: at })
      .where("id", "=", id)
      .where((where) => where.or([where("last_used_at", "is", null), where("last_used_at", "<", at)]))
      .execute();
}

async function addSecret(
  db: Db,
  credential: string,
  secret: NewSecretRow,
  now: string,
): Promise<CredentialSecretTable> {
  const row = { ...secret, credential, created_at: now, last_used_at: null, expires_at: null };
  await db.insertInto("credential_secret").values(row).execute();
  return row;
}

async function secretsOf(db: Db, credential: string, now: string): Promise<CredentialSecretTable[]> {
  return db
    .selectFrom("credential_secret")
    .selectAll()
    .where("credential", "=", credential)
    .where((where) => where.or([where("expires_at", "is", null), where("expires_at", ">", now)]))
    .orderBy("id", "desc")
    .limit(SHOWN_SECRETS)
    .execute();
}
