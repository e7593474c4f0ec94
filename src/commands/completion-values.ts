// What may stand in the place of an option's value or a command's first argument: a few words, or names that a daemon which runs is
// asked for when they are wanted. Nothing is started for them, and nothing is said where there is none.
import { clientOf, type Needed } from "#commands/client-of.ts";
import { scopes } from "#contract/identity.ts";
import { connectionStates, deliveryStates, runStates, syncStates } from "#contract/states.ts";
import { badRecordModes, deleteModes, syncModes } from "#contract/sync.ts";
import { usageKeys } from "#contract/wire/usage.ts";
import { webhookEvents } from "#contract/wire/webhooks.ts";
import { formats } from "#output/output.ts";

const paths = {
  connections: "/v1/connections",
  connectors: "/v1/connectors",
  controllers: "/v1/controllers",
  keys: "/v1/keys",
  clients: "/v1/clients",
  models: "/v1/models",
  syncs: "/v1/syncs",
  tokens: "/v1/gateway-tokens",
  webhooks: "/v1/webhooks",
} as const;

export type Names = keyof typeof paths;
export const nameKinds = Object.keys(paths) as Names[];

/** Whoever presses Tab does not wait for longer. */
const PATIENCE_MS = 500;
/** What a shell takes for one plain word: bash expands a list of completions as it does a command, and a daemon may be a stranger's. */
const PLAIN = /^[\w./:@+-]+$/;

/** Ids or names, as commands take them; none where no daemon runs that tells them. */
export async function namesOf(kind: Names, context: Needed): Promise<string[]> {
  try {
    const client = await clientOf(context, { start: false });
    const { data } = await client.request<{ data: { id?: string; name?: string }[] }>("GET", paths[kind], {
      query: kind === "controllers" || kind === "models" ? {} : { limit: 100 },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    const names = data.map(({ id, name }) => (kind === "controllers" ? name : id) ?? "");
    return names.filter((name) => PLAIN.test(name));
  } catch {
    return [];
  }
}

const statuses: Readonly<Record<string, readonly string[]>> = {
  "connection list": Object.keys(connectionStates),
  "sync list": Object.keys(syncStates),
  "sync runs": Object.keys(runStates),
  "webhook deliveries": Object.keys(deliveryStates),
  "webhook update": ["enabled", "disabled"],
};

const words: Readonly<Record<string, readonly string[]>> = {
  "--output": formats,
  "--level": ["debug", "info", "warn", "error"],
  "--by": usageKeys,
  "--mode": syncModes,
  "--deletes": deleteModes,
  "--on-bad-record": badRecordModes,
  "--schedule": ["manual", "realtime"],
  "--events": webhookEvents,
};

const names: Readonly<Record<string, Names>> = {
  "--controller": "controllers",
  "--model": "models",
  "--models": "models",
  "--provider": "connectors",
  "--connection": "connections",
  "--source": "connections",
  "--destination": "connections",
};

/** Of an option that takes one. */
export function valuesOf(path: string, flag: string): readonly string[] | Names | undefined {
  if (flag === "--status") return statuses[path];
  // Of `model list` these are the gateway's providers, of `connection create` the vendor's scopes.
  if (path === "model list") return undefined;
  if (flag === "--scopes") return path.startsWith("connection ") ? undefined : scopes;
  return words[flag] ?? names[flag];
}

const ofNouns: Readonly<Record<string, Names>> = {
  client: "clients",
  connection: "connections",
  connector: "connectors",
  controller: "controllers",
  key: "keys",
  sync: "syncs",
  token: "tokens",
  webhook: "webhooks",
};

/** Of a command's first argument; `argument` is what it is called. */
export function namesFor([noun = "", verb]: readonly string[], argument: string | undefined): Names | undefined {
  if (verb === undefined) return noun === "invoke" ? "controllers" : undefined;
  return ["id", "name", "connector"].includes(argument ?? "") ? ofNouns[noun] : undefined;
}
