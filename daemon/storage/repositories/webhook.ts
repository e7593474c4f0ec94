// Webhook subscriptions and their deliveries. An event becomes deliveries in the unit that caused it.
import { isObject } from "#contract/json-object.ts";
import type { Environment } from "#contract/protocol.ts";
import type { DeliveryStatus } from "#contract/states.ts";
import { newId } from "#shared/ids.ts";
import { type Page, paged, type Slice, slice } from "../page.ts";
import type { One } from "../resource.ts";
import type { Db } from "../schema.ts";
import type { Attempt, DeliveryRecord, DeliveryTable, WebhookRecord, WebhookTable } from "../tables/webhook.ts";
import { put as putJob } from "./job.ts";

export async function create(db: Db, { webhook }: { webhook: WebhookRecord }): Promise<void> {
  await db
    .insertInto("webhook")
    .values({ ...webhook, events: JSON.stringify(webhook.events) })
    .execute();
}

export async function get(db: Db, { id, environment }: One): Promise<WebhookRecord | null> {
  const row = await db
    .selectFrom("webhook")
    .selectAll()
    .where("id", "=", id)
    .where("environment", "=", environment)
    .executeTakeFirst();
  return row === undefined ? null : read(row);
}

export async function list(
  db: Db,
  { environment, page }: { environment: Environment; page: Page },
): Promise<Slice<WebhookRecord>> {
  const query = db.selectFrom("webhook").selectAll().where("environment", "=", environment);
  return slice(await paged(query, page).execute(), page, read);
}

type Changeable = Pick<WebhookRecord, "url" | "events" | "description" | "status" | "secrets">;

export async function update(
  db: Db,
  { id, environment, revision, change, now }: One & { revision: number; change: Partial<Changeable>; now: string },
): Promise<WebhookRecord | null | "stale"> {
  const { events, ...rest } = change;
  const row = await db
    .updateTable("webhook")
    .set({ ...rest, ...(events && { events: JSON.stringify(events) }), revision: revision + 1, updated_at: now })
    .where("id", "=", id)
    .where("environment", "=", environment)
    .where("revision", "=", revision)
    .returningAll()
    .executeTakeFirst();
  if (row !== undefined) return read(row);
  return (await get(db, { id, environment })) === null ? null : "stale";
}

/** Removes some of the deliveries that ended; true while there may be more. Whoever removes a webhook that has many begins with these. */
export async function removeEnded(db: Db, { id, environment, limit }: One & { limit: number }): Promise<boolean> {
  const some = db
    .selectFrom("delivery")
    .select("id")
    .where("webhook_id", "=", id)
    .where("environment", "=", environment)
    .where("status", "<>", "pending")
    .limit(limit);
  const { numDeletedRows } = await db.deleteFrom("delivery").where("id", "in", some).executeTakeFirstOrThrow();
  return Number(numDeletedRows) === limit;
}

/** With what is left of its deliveries. */
export async function remove(db: Db, { id, environment }: One): Promise<boolean> {
  const gone = await db
    .deleteFrom("webhook")
    .where("id", "=", id)
    .where("environment", "=", environment)
    .returning("id")
    .executeTakeFirst();
  if (gone === undefined) return false;
  await db.deleteFrom("delivery").where("webhook_id", "=", id).execute();
  return true;
}

export interface Emit {
  readonly environment: Environment;
  readonly type: string;
  readonly data: unknown;
  readonly now: string;
}

/** Puts one event into the queue of every enabled webhook that wants its kind; answers how many. */
export async function emit(db: Db, { environment, type, data, now }: Emit): Promise<number> {
  const enabled = await db
    .selectFrom("webhook")
    .select(["id", "events"])
    .where("environment", "=", environment)
    .where("status", "=", "enabled")
    .execute();
  const wanting = enabled.filter(({ events }) => (JSON.parse(events) as string[]).includes(type));
  const eventId = newId("evt", Date.parse(now));
  for (const { id } of wanting) await put(db, { webhookId: id, environment, eventId, type, data, now });
  return wanting.length;
}

interface NewDelivery extends Emit {
  readonly webhookId: string;
  readonly eventId: string;
}

/** One delivery to one webhook, whatever it is subscribed to; null where there is none. */
export async function deliver(db: Db, event: NewDelivery): Promise<DeliveryRecord | null> {
  const webhook = await get(db, { id: event.webhookId, environment: event.environment });
  return webhook === null ? null : put(db, event);
}

/** Bytes. */
const MAX_PAYLOAD = 20_000;

async function put(db: Db, { webhookId, environment, eventId, type, data, now }: NewDelivery): Promise<DeliveryRecord> {
  const delivery = {
    id: newId("dlv", Date.parse(now)),
    webhook_id: webhookId,
    environment,
    event_id: eventId,
    event_type: type,
    status: "pending" as const,
    payload: payloadOf({ type, timestamp: now, data }),
    attempts_before: 0,
    queued_at: now,
    next_attempt_at: now,
    created_at: now,
  };
  await db
    .insertInto("delivery")
    .values({ ...delivery, attempts: "[]" })
    .execute();
  await putJobOf(db, webhookId, now);
  return { ...delivery, attempts: [] };
}

/** No text is cut shorter: ids have 31 characters. */
const LEAST_TEXT = 40;
/** No list, and no object, is cut shorter: a run has 18 members. */
const LEAST_MEMBERS = 25;

// Standard Webhooks asks for less than 20 kB. What can be long are texts (messages, and a caller's own metadata); then, in an alphabet whose
// letters take many bytes, the metadata's names; and lists of warnings.
function payloadOf(event: object): string {
  for (const longest of [Number.POSITIVE_INFINITY, 4_000, 1_000, 300, 100, LEAST_TEXT]) {
    const text = JSON.stringify(event, shortening(longest, Number.POSITIVE_INFINITY));
    if (Buffer.byteLength(text) < MAX_PAYLOAD) return text;
  }
  return JSON.stringify(event, shortening(LEAST_TEXT, LEAST_MEMBERS));
}

function shortening(longest: number, most: number): (key: string, value: unknown) => unknown {
  return (_, value) => {
    if (typeof value === "string" && value.length > longest) return `${value.slice(0, longest).toWellFormed()}...`;
    if (Array.isArray(value)) return value.slice(0, most);
    return isObject(value) ? Object.fromEntries(Object.entries(value).slice(0, most)) : value;
  };
}

// One job for each webhook: it sends what is due there, so that one receiver's deliveries wait for no other's.
function putJobOf(db: Db, webhookId: string, now: string): Promise<void> {
  const payload = JSON.stringify({ webhook: webhookId });
  return putJob(db, { id: newId("job"), queue: "webhook", key: webhookId, payload, runAt: Date.parse(now) });
}

async function getDelivery(db: Db, id: string): Promise<DeliveryRecord | null> {
  const row = await db.selectFrom("delivery").selectAll().where("id", "=", id).executeTakeFirst();
  return row === undefined ? null : readDelivery(row);
}

export interface Due {
  readonly webhookId: string;
  readonly now: string;
  /** What lies further ahead is due as well. */
  readonly ahead: string;
  readonly limit: number;
  /** Those that are being sent. */
  readonly except: readonly string[];
}

/** What one webhook has to be sent now, longest due first. */
export async function dueDeliveries(db: Db, { webhookId, now, ahead, limit, except }: Due): Promise<DeliveryRecord[]> {
  let query = pendingOf(db, webhookId)
    .selectAll()
    .where((eb) => eb.or([eb("next_attempt_at", "<=", now), eb("next_attempt_at", ">", ahead)]));
  if (except.length > 0) query = query.where("id", "not in", except);
  const rows = await query.orderBy("next_attempt_at").limit(limit).execute();
  return rows.map(readDelivery);
}

/** When one webhook has to be sent something next; null: never. */
export async function nextAttempt(db: Db, { webhookId }: { webhookId: string }): Promise<string | null> {
  const row = await pendingOf(db, webhookId)
    .select((eb) => eb.fn.min("next_attempt_at").as("at"))
    .executeTakeFirst();
  return row?.at ?? null;
}

function pendingOf(db: Db, webhookId: string) {
  return db.selectFrom("delivery").where("webhook_id", "=", webhookId).where("status", "=", "pending");
}

/** Puts an attempt off. */
export async function defer(db: Db, { id, until }: { id: string; until: string }): Promise<void> {
  await db.updateTable("delivery").set({ next_attempt_at: until }).where("id", "=", id).execute();
}

export async function listDeliveries(
  db: Db,
  { webhookId, status, page }: { webhookId: string; status?: DeliveryStatus | undefined; page: Page },
): Promise<Slice<DeliveryRecord>> {
  let query = db.selectFrom("delivery").selectAll().where("webhook_id", "=", webhookId);
  if (status !== undefined) query = query.where("status", "=", status);
  return slice(await paged(query, page).execute(), page, readDelivery);
}

/** Of both environments. */
export async function ids(db: Db): Promise<string[]> {
  return (await db.selectFrom("webhook").select("id").execute()).map(({ id }) => id);
}

export interface PruneDeliveries {
  readonly webhookId: string;
  /** Those that ended and were last queued before it go. */
  readonly queuedBefore: string;
  /** Of more than so many, the oldest go that succeeded. */
  readonly count: number;
  /** Only ids after this one are looked at; at most `limit`. */
  readonly after: string;
  readonly limit: number;
}

/** Removes deliveries that are too old or too many, oldest first, pending ones never; `next`: where to go on, null at the end. */
export async function pruneDeliveries(
  db: Db,
  { webhookId, queuedBefore, count, after, limit }: PruneDeliveries,
): Promise<{ removed: number; next: string | null }> {
  const ofWebhook = db.selectFrom("delivery").where("webhook_id", "=", webhookId);
  const surplus = await ofWebhook.select("id").orderBy("id", "desc").offset(count).limit(1).executeTakeFirst();
  const tooMany = (id: string) => surplus !== undefined && id <= surplus.id;
  const rows = await ofWebhook
    .select(["id", "status", "queued_at", "created_at"])
    .where("id", ">", after)
    .orderBy("id")
    .limit(limit)
    .execute();
  const gone = rows
    .filter(({ status }) => status !== "pending")
    .filter(({ id, status, queued_at }) => queued_at < queuedBefore || (status === "succeeded" && tooMany(id)))
    .map(({ id }) => id);
  // A redelivery may have begun meanwhile on another replica.
  const removed =
    gone.length === 0
      ? 0
      : (await db.deleteFrom("delivery").where("id", "in", gone).where("status", "<>", "pending").executeTakeFirst())
          .numDeletedRows;
  const last = rows.at(-1);
  const over = !last || rows.length < limit || (last.created_at >= queuedBefore && !tooMany(last.id));
  return { removed: Number(removed), next: over ? null : last.id };
}

/** Starts the schedule anew with the same id and body. */
export async function redeliver(
  db: Db,
  { id, webhookId, environment, now }: One & { webhookId: string; now: string },
): Promise<DeliveryRecord | null> {
  const webhook = await get(db, { id: webhookId, environment });
  const delivery = await getDelivery(db, id);
  if (webhook === null || delivery === null || delivery.webhook_id !== webhookId) return null;
  const row = await db
    .updateTable("delivery")
    .set({ status: "pending", attempts_before: delivery.attempts.length, queued_at: now, next_attempt_at: now })
    .where("id", "=", id)
    .returningAll()
    .executeTakeFirstOrThrow();
  await putJobOf(db, webhookId, now);
  return readDelivery(row);
}

export interface Recorded {
  readonly id: string;
  /** As it was when the attempt began. */
  readonly queuedAt: string;
  readonly status: DeliveryStatus;
  /** null: none was made, the delivery only ends. */
  readonly attempt: Attempt | null;
  readonly nextAttemptAt: string | null;
  /** Disable the webhook: `gone` at once, `exhausted` unless something has succeeded since this delivery was queued. */
  readonly disable: "gone" | "exhausted" | null;
  readonly now: string;
}

/** Kept of a delivery that is sent again and again. */
const MAX_ATTEMPTS = 100;

/** Keeps what an attempt brought; answers whether the webhook was disabled by it. */
export async function recordAttempt(
  db: Db,
  { id, queuedAt, status, attempt, nextAttemptAt, disable, now }: Recorded,
): Promise<boolean> {
  const delivery = await getDelivery(db, id);
  if (delivery === null) return false;
  const all = attempt === null ? delivery.attempts : [...delivery.attempts, attempt];
  const attempts = all.slice(-MAX_ATTEMPTS);
  if ((delivery.queued_at !== queuedAt || delivery.status !== "pending") && status !== "succeeded") {
    // Asked for once more while this attempt was under way, or ended by another daemon that took it over: it belongs to what was before.
    const changes = { attempts: JSON.stringify(attempts), attempts_before: attempts.length };
    await db.updateTable("delivery").set(changes).where("id", "=", id).execute();
    return false;
  }
  const attempts_before = Math.max(0, delivery.attempts_before - (all.length - attempts.length));
  await db
    .updateTable("delivery")
    .set({ status, attempts: JSON.stringify(attempts), attempts_before, next_attempt_at: nextAttemptAt })
    .where("id", "=", id)
    .execute();
  const webhook = db.updateTable("webhook").where("id", "=", delivery.webhook_id);
  if (status === "succeeded") await webhook.set({ succeeded_at: now }).execute();
  if (disable === null) return false;
  let disabling = webhook
    .set((eb) => ({ status: "disabled" as const, updated_at: now, revision: eb("revision", "+", 1) }))
    .where("status", "=", "enabled");
  if (disable === "exhausted")
    disabling = disabling.where((eb) =>
      eb.or([eb("succeeded_at", "is", null), eb("succeeded_at", "<", delivery.queued_at)]),
    );
  const changed = await disabling.returning("id").execute();
  return changed.length > 0;
}

function read({ events, ...row }: WebhookTable): WebhookRecord {
  return { ...row, events: JSON.parse(events) as string[] };
}

function readDelivery({ attempts, ...row }: DeliveryTable): DeliveryRecord {
  return { ...row, attempts: JSON.parse(attempts) as Attempt[] };
}
