// What can be done with webhooks. They are live only: their routes refuse sandbox callers before they come here.
import { setTimeout } from "node:timers/promises";
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { isObject } from "#contract/json-object.ts";
import type { DeliveryStatus } from "#contract/states.ts";
import type { ListPage } from "#contract/wire/list.ts";
import type { CreateWebhook, Delivery, PatchWebhook, Webhook } from "#contract/wire/webhooks.ts";
import type { Egress } from "#daemon/egress/egress.ts";
import { type Owner, webhookPlace } from "#daemon/secrets/places.ts";
import type { Sealer } from "#daemon/secrets/sealer.ts";
import { answerPage, type ListOptions, pageOf } from "#daemon/storage/list.ts";
import type { Storage } from "#daemon/storage/storage.ts";
import type { DeliveryRecord, WebhookRecord } from "#daemon/storage/tables/webhook.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { newId } from "#shared/ids.ts";
import { changesOf } from "../changes.ts";
import { missing } from "../missing.ts";
import { newSecret, type SigningSecret } from "./signature.ts";

export type WebhookWithSecret = Webhook & { readonly secret: string };

export interface Webhooks {
  create(principal: Principal, input: CreateWebhook): Promise<WebhookWithSecret>;
  /** What is wrong with a body that its schema refuses, beyond what the schema tells. */
  survey(given: unknown): Promise<readonly FieldProblem[]>;
  get(principal: Principal, id: string): Promise<Webhook>;
  list(principal: Principal, options: ListOptions): Promise<ListPage<Webhook>>;
  patch(principal: Principal, id: string, patch: PatchWebhook): Promise<Webhook>;
  remove(principal: Principal, id: string): Promise<void>;
  roll(principal: Principal, id: string, overlapS: number): Promise<WebhookWithSecret>;
  /** Sends an event of type `webhook.test`, whatever it is subscribed to. */
  test(principal: Principal, id: string): Promise<Delivery>;
  deliveries(
    principal: Principal,
    id: string,
    options: ListOptions & { status?: DeliveryStatus },
  ): Promise<ListPage<Delivery>>;
  redeliver(principal: Principal, id: string, delivery: string): Promise<Delivery>;
}

export interface WebhooksOptions {
  readonly storage: Storage;
  readonly sealer: Sealer;
  readonly egress: Egress;
  readonly clock: Clock;
  /** Deliveries were put into the queue. */
  readonly wake: () => void;
}

/** Nobody waits longer for a name whose servers are silent. */
const LOOK_UP_MS = 3_000;

/** All of them sign each delivery, in one header: servers take some kilobytes. */
const MAX_SECRETS = 10;

/** Deliveries that are removed in one step: some 20 ms. */
const REMOVED = 1_000;

export function createWebhooks({ storage, sealer, egress, clock, wake }: WebhooksOptions): Webhooks {
  const units = storage.units.webhook;
  const changes = changesOf("webhook");
  const now = (): string => rfc3339(clock.now());

  return {
    async create({ environment }, { url, events, description = null }) {
      await refuseUnreachable(url);
      const secret = newSecret();
      const ms = clock.now();
      const id = newId("wh", ms);
      const webhook: WebhookRecord = {
        ...{ id, environment, url, events, description, status: "enabled", revision: 1, succeeded_at: null },
        secrets: sealSecrets(sealer, { id, environment }, [{ secret, expires_at: null }]),
        created_at: rfc3339(ms),
        updated_at: rfc3339(ms),
      };
      await units.create({ webhook });
      return { ...webhookDocument(webhook), secret };
    },

    survey: async (given) => (isObject(given) ? urlProblems(given["url"]) : []),

    get: async (principal, id) => webhookDocument(await find(principal, id)),

    async list({ environment }, options) {
      const page = pageOf("wh", options);
      return answerPage(await units.list({ environment, page }), page, webhookDocument);
    },

    async patch(principal, id, patch) {
      if (patch.url !== undefined) await refuseUnreachable(patch.url);
      return webhookDocument(await change(principal, id, () => patch));
    },

    async remove({ environment }, id) {
      // Step by step, so that whoever else asks the database is served in between.
      while (await units.removeEnded({ id, environment, limit: REMOVED }));
      if (!(await units.remove({ id, environment }))) throw missing("webhook", id);
    },

    async roll(principal, id, overlapS) {
      const secret = newSecret();
      const rolled = await change(principal, id, (webhook) => {
        const end = clock.now() + overlapS * 1000;
        const old = openSecrets(sealer, webhook)
          .map((one) => ({ ...one, expires_at: Math.min(one.expires_at ?? end, end) }))
          .filter(({ expires_at }) => expires_at > clock.now())
          .slice(0, MAX_SECRETS - 1);
        return { secrets: sealSecrets(sealer, webhook, [{ secret, expires_at: null }, ...old]) };
      });
      return { ...webhookDocument(rolled), secret };
    },

    async test({ environment }, id) {
      const delivery = await units.deliver({
        ...{ webhookId: id, environment, eventId: newId("evt", clock.now()), type: "webhook.test", now: now() },
        data: { webhook: id, message: "A test event, sent on demand." },
      });
      if (delivery === null) throw missing("webhook", id);
      wake();
      return deliveryDocument(delivery);
    },

    async deliveries(principal, id, { status, ...options }) {
      await find(principal, id);
      const page = pageOf("dlv", options);
      return answerPage(await units.listDeliveries({ webhookId: id, status, page }), page, deliveryDocument);
    },

    async redeliver({ environment }, webhookId, id) {
      const delivery = await units.redeliver({ id, webhookId, environment, now: now() });
      if (delivery === null) throw missing("delivery", id);
      wake();
      return deliveryDocument(delivery);
    },
  };

  async function find({ environment }: Principal, id: string): Promise<WebhookRecord> {
    const found = await units.get({ id, environment });
    if (found === null) throw missing("webhook", id);
    return found;
  }

  type Change = Parameters<typeof units.update>[0]["change"];

  function change(principal: Principal, id: string, make: (webhook: WebhookRecord) => object): Promise<WebhookRecord> {
    return changes(id, async () => {
      const { environment, revision, ...rest } = await find(principal, id);
      const update = make({ environment, revision, ...rest }) as Change;
      const changed = await units.update({ id, environment, revision, change: update, now: now() });
      if (changed === null) throw missing("webhook", id);
      return changed;
    });
  }

  // A private destination is refused here already; what resolves otherwise later is refused when it is delivered.
  async function refuseUnreachable(address: string): Promise<void> {
    const problems = urlProblems(address);
    if (problems.length > 0) throw new MagicError("validation_failed", undefined, { problems });
    const url = new URL(address);
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    try {
      await Promise.race([egress.addresses(url.hostname, port), setTimeout(LOOK_UP_MS, undefined, { ref: false })]);
    } catch (error) {
      if ((error as MagicError).code === "egress_blocked") throw error;
    }
  }
}

function urlProblems(address: unknown): FieldProblem[] {
  if (typeof address !== "string" || address === "" || address.length > 2048) return [];
  const url = URL.parse(address);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "") return [];
  return [{ pointer: "/url", code: "format", detail: "must be an http or https URL without credentials" }];
}

function sealSecrets(sealer: Sealer, webhook: Owner, secrets: readonly SigningSecret[]): string {
  return sealer.seal(JSON.stringify(secrets), webhookPlace(webhook));
}

/** None where they were given up with the master key that sealed them: `roll` makes a new one. */
export function openSecrets(sealer: Sealer, webhook: WebhookRecord): readonly SigningSecret[] {
  if (webhook.secrets === "") return [];
  return JSON.parse(sealer.open(webhook.secrets, webhookPlace(webhook))) as SigningSecret[];
}

function webhookDocument(webhook: WebhookRecord): Webhook {
  const { id, url, events, status, environment, description, created_at, updated_at } = webhook;
  const shown = events as Webhook["events"];
  return { id, object: "webhook", url, events: [...shown], status, environment, description, created_at, updated_at };
}

function deliveryDocument(delivery: DeliveryRecord): Delivery {
  return {
    id: delivery.id,
    object: "delivery",
    webhook: delivery.webhook_id,
    event_id: delivery.event_id,
    event_type: delivery.event_type,
    status: delivery.status,
    payload: JSON.parse(delivery.payload) as Record<string, unknown>,
    attempts: [...delivery.attempts],
    response_code: delivery.attempts.at(-1)?.response_code ?? null,
    next_attempt_at: delivery.next_attempt_at,
    created_at: delivery.created_at,
  };
}
