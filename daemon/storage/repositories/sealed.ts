// What the master key sealed to stay: which key that was, whether there is anything, and the end of it all. What is sealed for hours
// only (answers of Idempotency-Keys, thought signatures) does not count here.
import type { Environment } from "#contract/protocol.ts";
import { FINGERPRINT_SETTING } from "#shared/master-key.ts";
import type { Db } from "../schema.ts";
import type { ConnectionBody } from "../tables/connection.ts";
import { get as getSetting, put as putSetting } from "./setting.ts";

/** A sealed value, to try a key on. */
export interface SealedSample {
  readonly of: "connection" | "webhook";
  readonly id: string;
  readonly environment: Environment;
  readonly sealed: string;
}

export interface Agreement {
  /** The fingerprint that counts; null where values were sealed before fingerprints were kept. */
  readonly fingerprint: string | null;
  /** The newest sealed value; null where there is none, or the given fingerprint counts. */
  readonly sample: SealedSample | null;
  /** True: it was another one's until now, by which nothing was sealed. */
  readonly replaces?: boolean;
}

export interface Agree {
  readonly fingerprint: string;
  /** True where no other daemon can stand on this database: then another key is as good as long as nothing is sealed. */
  readonly alone: boolean;
}

/** Keeps the fingerprint where none is kept yet and nothing is sealed; answers the one that counts. */
export async function agree(db: Db, { fingerprint, alone }: Agree): Promise<Agreement> {
  const kept = await getSetting(db, { key: FINGERPRINT_SETTING });
  if (kept === fingerprint) return { fingerprint, sample: null };
  const sample = await newest(db);
  if (sample !== null || (kept !== null && !alone)) return { fingerprint: kept, sample };
  await putSetting(db, { key: FINGERPRINT_SETTING, value: fingerprint });
  return { fingerprint, sample: null, replaces: kept !== null };
}

async function newest(db: Db): Promise<SealedSample | null> {
  const connection = await db
    .selectFrom("connection")
    .select(["id", "environment", "secret as sealed", "updated_at"])
    .where("secret", "is not", null)
    .orderBy("updated_at", "desc")
    .executeTakeFirst();
  const webhook = await db
    .selectFrom("webhook")
    .select(["id", "environment", "secrets as sealed", "updated_at"])
    .where("secrets", "<>", "")
    .orderBy("updated_at", "desc")
    .executeTakeFirst();
  if (connection && (!webhook || connection.updated_at >= webhook.updated_at)) {
    const { id, environment, sealed } = connection;
    return { of: "connection", id, environment, sealed: sealed ?? "" };
  }
  if (!webhook) return null;
  const { id, environment, sealed } = webhook;
  return { of: "webhook", id, environment, sealed };
}

export interface Forgotten {
  readonly connections: number;
  readonly webhooks: number;
}

/** Gives up what another key sealed: connections lose their settings, webhooks their secrets (and are disabled); this key counts now. */
export async function forget(db: Db, { fingerprint, now }: { fingerprint: string; now: string }): Promise<Forgotten> {
  const connections = await db.selectFrom("connection").selectAll().where("secret", "is not", null).execute();
  for (const { id, environment, body, revision } of connections) {
    const kept = JSON.parse(body) as ConnectionBody;
    const message =
      "Its configuration and credentials were given up with the master key that sealed them: enter them again.";
    const health = { status: "unknown", checked_at: null, latency_ms: null, message } as const;
    await db
      .updateTable("connection")
      .set({
        secret: null,
        revision: revision + 1,
        updated_at: now,
        // The sandbox's state and health are simulated.
        ...(environment === "live" && { status: "pending", body: JSON.stringify({ ...kept, health }) }),
      })
      .where("id", "=", id)
      .execute();
  }
  const webhooks = await db
    .updateTable("webhook")
    .set((eb) => ({ secrets: "", status: "disabled", revision: eb("revision", "+", 1), updated_at: now }))
    .where("secrets", "<>", "")
    .returning("id")
    .execute();
  await db.deleteFrom("oauth_state").execute();
  await putSetting(db, { key: FINGERPRINT_SETTING, value: fingerprint });
  return { connections: connections.length, webhooks: webhooks.length };
}
