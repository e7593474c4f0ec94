// The resources of the API as methods. Lists are pages; `iterate` walks through all of them.
import type * as Connections from "#contract/wire/connections.ts";
import type * as Connectors from "#contract/wire/connectors.ts";
import type * as OAuth from "#contract/wire/oauth.ts";
import type * as Syncs from "#contract/wire/syncs.ts";
import type * as Webhooks from "#contract/wire/webhooks.ts";
import { type Camelized, camelize, snakify } from "./case.ts";
import { type Call, waited } from "./transport.ts";

export type Connection = Camelized<Connections.Connection>;
export type DataObject = Camelized<Connections.DataObject>;
export type Connector = Camelized<Connectors.Connector>;
export type Sync = Camelized<Syncs.Sync>;
export type Run = Camelized<Syncs.Run>;
export type Webhook = Camelized<Webhooks.Webhook>;
export type Delivery = Camelized<Webhooks.Delivery>;
export type StartedOAuth = Camelized<OAuth.StartedOAuth>;
export interface Reject {
  readonly id: string;
  readonly key: string;
  readonly column: string | null;
  readonly reason: string;
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly hasMore: boolean;
  /** For `startingAfter`; null at the end. */
  readonly nextCursor: string | null;
}

export interface ListOptions {
  readonly limit?: number;
  readonly startingAfter?: string;
  readonly endingBefore?: string;
}

export interface PostOptions {
  /** Yours instead of a random one: the same key makes the same call happen once, across processes too. */
  readonly idempotencyKey?: string;
}

type Filtered<F> = ListOptions & { readonly [K in keyof F]?: F[K] };

/** The API's nouns over one way to call it. Lists give a page; `iterate` goes through all pages. */
export function resources(call: Call) {
  const get = async <T>(path: string, query = {}, signal?: AbortSignal) =>
    camelize(
      await call<T>("GET", path, { query: snakify(query) as object as Record<string, unknown>, signal }),
    ) as never;
  const post = async (path: string, body: unknown = {}, { idempotencyKey }: PostOptions = {}) =>
    camelize(await call("POST", path, { body: snakify(body), idempotencyKey })) as never;
  const patch = async (path: string, body: unknown) =>
    camelize(await call("PATCH", path, { body: snakify(body) })) as never;
  const remove = async (path: string) => void (await call("DELETE", path));
  const part = encodeURIComponent;

  async function* walk<T extends { readonly id: string }>(
    list: (options: ListOptions) => Promise<Page<T>>,
    options: ListOptions = {},
  ): AsyncGenerator<T, void> {
    // Newest first; from `endingBefore` on towards the newest.
    const side = options.endingBefore === undefined ? "startingAfter" : "endingBefore";
    let cursor = options[side];
    do {
      const page: Page<T> = await list({ limit: 100, ...options, ...(cursor && { [side]: cursor }) });
      yield* side === "startingAfter" ? page.data : page.data.toReversed();
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  const connectors = {
    list: (options: Filtered<{ category: string }> = {}): Promise<Page<Connector>> => get("/v1/connectors", options),
    iterate: (options: Filtered<{ category: string }> = {}) => walk<Connector>(connectors.list, options),
    get: (id: string): Promise<Connector> => get(`/v1/connectors/${part(id)}`),
  };

  const connections = {
    create: (input: Camelized<Connections.CreateConnection>, options?: PostOptions): Promise<Connection> =>
      post("/v1/connections", input, options),
    list: (options: Filtered<{ provider: string; status: Connection["status"] }> = {}): Promise<Page<Connection>> =>
      get("/v1/connections", options),
    iterate: (options: Filtered<{ provider: string; status: Connection["status"] }> = {}) =>
      walk<Connection>(connections.list, options),
    get: (id: string): Promise<Connection> => get(`/v1/connections/${part(id)}`),
    update: (id: string, change: Camelized<Connections.PatchConnection>): Promise<Connection> =>
      patch(`/v1/connections/${part(id)}`, change),
    /** Pauses its syncs. */
    delete: (id: string): Promise<void> => remove(`/v1/connections/${part(id)}`),
    /** Tests it now. */
    check: (id: string): Promise<Connection> => post(`/v1/connections/${part(id)}/check`),
    objects: (id: string, options: ListOptions = {}): Promise<Page<DataObject>> =>
      get(`/v1/connections/${part(id)}/objects`, options),
    /**
     * Begins an authorization at the provider: send the browser to `authorizationUrl`; it comes back to `callbackUrl` with
     * `connection` and `status=connected`, or with `error`. Live only.
     */
    startOAuth: (input: Camelized<OAuth.StartOAuth>, options?: PostOptions): Promise<StartedOAuth> =>
      post("/v1/connections/oauth/start", input, options),
  };

  const runs = {
    get: (id: string): Promise<Run> => get(`/v1/runs/${part(id)}`),
    cancel: (id: string): Promise<Run> => post(`/v1/runs/${part(id)}/cancel`),
    rejects: (id: string, options: ListOptions = {}): Promise<Page<Reject>> =>
      get(`/v1/runs/${part(id)}/rejects`, options),
    iterateRejects: (id: string, options: ListOptions = {}) => walk<Reject>((page) => runs.rejects(id, page), options),
    /** Resolves when the run has ended, however it did: look at `status`. Polls every `intervalMs` (default 500). */
    async wait(
      id: string,
      { intervalMs = 500, signal }: { intervalMs?: number; signal?: AbortSignal } = {},
    ): Promise<Run> {
      for (;;) {
        signal?.throwIfAborted();
        const run: Run = await get(`/v1/runs/${part(id)}`, {}, signal);
        if (run.status !== "queued" && run.status !== "running") return run;
        await waited(intervalMs, signal);
      }
    },
  };

  const syncs = {
    create: (input: Camelized<Syncs.CreateSync>, options?: PostOptions): Promise<Sync> =>
      post("/v1/syncs", input, options),
    list: (options: Filtered<{ status: Sync["status"]; connection: string }> = {}): Promise<Page<Sync>> =>
      get("/v1/syncs", options),
    iterate: (options: Filtered<{ status: Sync["status"]; connection: string }> = {}) =>
      walk<Sync>(syncs.list, options),
    get: (id: string): Promise<Sync> => get(`/v1/syncs/${part(id)}`),
    update: (id: string, change: Camelized<Syncs.PatchSync>): Promise<Sync> => patch(`/v1/syncs/${part(id)}`, change),
    pause: (id: string): Promise<Sync> => syncs.update(id, { status: "paused" }),
    resume: (id: string): Promise<Sync> => syncs.update(id, { status: "active" }),
    delete: (id: string): Promise<void> => remove(`/v1/syncs/${part(id)}`),
    /** Starts a run, or answers the one under way; `runs.wait` follows it. */
    trigger: (
      id: string,
      input: { fullRefresh?: boolean; objects?: string[] } = {},
      options?: PostOptions,
    ): Promise<Run> => post(`/v1/syncs/${part(id)}/trigger`, input, options),
    runs: (id: string, options: Filtered<{ status: Run["status"] }> = {}): Promise<Page<Run>> =>
      get(`/v1/syncs/${part(id)}/runs`, options),
    iterateRuns: (id: string, options: Filtered<{ status: Run["status"] }> = {}) =>
      walk<Run>((page) => syncs.runs(id, page), options),
  };

  const webhooks = {
    /** `secret` is in this answer alone. */
    create: (input: Camelized<Webhooks.CreateWebhook>, options?: PostOptions): Promise<Webhook & { secret: string }> =>
      post("/v1/webhooks", input, options),
    list: (options: ListOptions = {}): Promise<Page<Webhook>> => get("/v1/webhooks", options),
    iterate: (options: ListOptions = {}) => walk<Webhook>(webhooks.list, options),
    get: (id: string): Promise<Webhook> => get(`/v1/webhooks/${part(id)}`),
    update: (id: string, change: Camelized<Webhooks.PatchWebhook>): Promise<Webhook> =>
      patch(`/v1/webhooks/${part(id)}`, change),
    delete: (id: string): Promise<void> => remove(`/v1/webhooks/${part(id)}`),
    roll: (id: string, input: { overlapS?: number } = {}): Promise<Webhook & { secret: string }> =>
      post(`/v1/webhooks/${part(id)}/roll`, input),
    test: (id: string): Promise<Delivery> => post(`/v1/webhooks/${part(id)}/test`),
    deliveries: (id: string, options: Filtered<{ status: Delivery["status"] }> = {}): Promise<Page<Delivery>> =>
      get(`/v1/webhooks/${part(id)}/deliveries`, options),
    iterateDeliveries: (id: string, options: Filtered<{ status: Delivery["status"] }> = {}) =>
      walk<Delivery>((page) => webhooks.deliveries(id, page), options),
    redeliver: (id: string, delivery: string): Promise<Delivery> =>
      post(`/v1/webhooks/${part(id)}/deliveries/${part(delivery)}/redeliver`),
  };

  return { connectors, connections, syncs, runs, webhooks };
}
