// Several tokens, each with a quota of calls of its own: one is used until its calls are spent, then the next. When all are spent, the
// earliest reset is waited for. How many calls are left the vendor says, when it is asked and in its answers.
import { createHash } from "node:crypto";
import { MagicError } from "#contract/errors.ts";
import { type Context, text } from "../context.ts";
import { type Component, child, children, isRecord, list, manifestError, optionalText } from "../manifest/component.ts";
import { dpathOne } from "../read/dpath.ts";
import type { Authenticator, Destination, Login } from "./authenticator.ts";
import { untilSeconds } from "./backoff-strategies.ts";
import { durationMs, matcherOf } from "./budget.ts";
import type { HttpResponse } from "./client.ts";
import { responseVariables } from "./response.ts";

/** A reset that is over already must not be asked about without end. */
const LEAST_WAIT_MS = 5000;
const MOST_PACE_MS = 10_000;
/** The vendor's answers and its quota endpoint may differ by so much about one window. */
const SKEW_MS = 60_000;

/** The calls that are left of one token in one pool; `tracked` false: the vendor counts none. */
interface Quota {
  remaining: number;
  resetAt: number;
  limit: number;
  readonly tracked: boolean;
}

interface Pool {
  readonly name: string;
  readonly component: Component;
  readonly matches: ((to: Destination) => boolean) | undefined;
  readonly exhausting: readonly number[];
}

interface State {
  active: number;
  quotas: ReadonlyMap<string, ReadonlyMap<Pool, Quota>>;
  flight: Promise<void> | undefined;
}

export function tokenPool(context: Context, component: Component, login: Login): Authenticator {
  // Not before they are needed: of several ways to authenticate one is configured.
  let known: readonly string[] | undefined;
  const tokens = (): readonly string[] => {
    known ??= tokensOf(context, component);
    return known;
  };
  const pools = children(component, "quotas").map(poolOf);
  const [first] = pools;
  if (!first) throw manifestError("RateLimitedMultipleTokenAuthenticator.quotas is empty");
  const source = child(component, "quota_status_source");
  const header = optionalText(component, "header") ?? "Authorization";
  const method = optionalText(component, "auth_method") ?? "Bearer";
  const mostWait = (): number => durationMs(text(context, component, component["max_wait_time"] ?? "PT2H"));
  const reserveOf = ({ limit }: Quota): number =>
    Math.max(
      Number(component["budget_min_reserve"] ?? 50),
      limit * Number(component["budget_reserve_fraction"] ?? 0.1),
    );
  const key = `tokens ${createHash("sha256").update(JSON.stringify(component)).digest("hex")}`;
  const state = (context.shared.get(key) ?? { active: 0, quotas: new Map(), flight: undefined }) as State;
  context.shared.set(key, state);

  const poolFor = (to: Destination): Pool =>
    pools.find(({ matches }) => matches?.(to)) ?? pools.find(({ matches }) => !matches) ?? first;
  const signed = (token: string): string => `${method} ${token}`.trim();
  const quotaOf = (token: string, pool: Pool): Quota | undefined => state.quotas.get(token)?.get(pool);
  const quotasIn = (pool: Pool): Quota[] =>
    tokens()
      .map((token) => quotaOf(token, pool))
      .filter((quota) => quota !== undefined);

  // All tokens' counts at once; who asks meanwhile waits for the same.
  const seed = (): Promise<void> => {
    state.flight ??= (async () => {
      const quotas = new Map<string, ReadonlyMap<Pool, Quota>>();
      for (const token of tokens()) quotas.set(token, await askFor(token));
      state.quotas = quotas;
    })().finally(() => {
      state.flight = undefined;
    });
    return state.flight;
  };

  const askFor = async (token: string): Promise<ReadonlyMap<Pool, Quota>> => {
    const untracked = list(source["unavailable_status_codes"]);
    const ignored = { type: "HttpResponseFilter", http_codes: untracked, action: "IGNORE" };
    const ask = login({
      ...{ type: "HttpRequester", url: source["url"], http_method: source["http_method"] ?? "GET" },
      request_headers: source["request_headers"] ?? {},
      $parameters: source["$parameters"] ?? {},
      authenticator: {
        ...{ type: "ApiKeyAuthenticator", header, api_token: "{{ parameters['signed'] }}" },
        $parameters: { signed: signed(token) },
      },
      ...(untracked.length > 0 && { error_handler: { type: "DefaultErrorHandler", response_filters: [ignored] } }),
    });
    const response = await ask();
    const answer = response && responseVariables(response)["response"];
    return new Map(pools.map((pool) => [pool, answer === undefined ? noQuota() : quotaIn(answer, pool, context)]));
  };

  // One call of the pool, and the token that it was taken from.
  const acquire = async (pool: Pool): Promise<string> => {
    if (state.quotas.size === 0) await seed();
    let deadline: number | undefined;
    for (;;) {
      const token = tokens()[state.active % tokens().length] as string;
      const quota = quotaOf(token, pool) ?? noQuota();
      if (!quota.tracked) {
        state.active++;
        return token;
      }
      if (quota.remaining > 0) {
        quota.remaining--;
        await pace(pool, quota);
        return token;
      }
      const all = quotasIn(pool);
      if (all.some(({ remaining, tracked }) => remaining > 0 || !tracked)) {
        state.active++;
        continue;
      }
      const now = context.clock.monotonic();
      // Before they are given up the vendor is asked once, however short the wait may be.
      const asked = deadline !== undefined;
      deadline ??= now + mostWait();
      const wait = Math.min(...all.map(({ resetAt }) => resetAt)) - context.clock.now();
      if ((wait > 0 && wait >= deadline - now) || (asked && now >= deadline))
        throw new MagicError(
          "upstream_error",
          `the calls of all tokens are spent (${pool.name}), for longer than max_wait_time`,
        );
      const patience = Math.min(Math.max(wait, LEAST_WAIT_MS), deadline - now);
      context.log(
        "info",
        `the calls of all tokens are spent (${pool.name}); going on in ${Math.ceil(patience / 1000)} s`,
      );
      await context.sleep(patience);
      if (quotasIn(pool).every(({ remaining, tracked }) => remaining <= 0 && tracked)) await seed();
    }
  };

  // The last calls of all tokens are spread over the time until there are more.
  const pace = async (pool: Pool, quota: Quota): Promise<void> => {
    const all = quotasIn(pool);
    if (all.some((each) => !each.tracked || each.remaining > reserveOf(each))) return;
    const left = all.reduce((sum, { remaining }) => sum + Math.max(remaining, 0), 0);
    const until = quota.resetAt - context.clock.now();
    const delay = left > 0 ? Math.min(until / left, MOST_PACE_MS) : 0;
    if (delay >= 100) await context.sleep(delay);
  };

  const learn = (token: string, to: Destination, response: HttpResponse): void => {
    const pool = poolFor(to);
    const quota = quotaOf(token, pool);
    if (!quota?.tracked) return;
    const { remaining, resetAt, limit } = headersOf(pool, response, context.clock.now());
    if (limit !== undefined && limit > 0 && (resetAt === undefined || resetAt >= quota.resetAt)) quota.limit = limit;
    if (resetAt !== undefined && resetAt > quota.resetAt) {
      // A new window.
      quota.resetAt = resetAt;
      quota.remaining = remaining ?? quota.limit;
    } else if (remaining !== undefined) {
      // Answers come out of order, and may speak of a window that is over.
      const spent = remaining <= 0 && pool.exhausting.includes(response.status);
      if (spent || resetAt === undefined || resetAt >= quota.resetAt - SKEW_MS)
        quota.remaining = Math.min(quota.remaining, remaining);
    }
  };

  return {
    async apply(parts, to) {
      const token = await acquire(poolFor(to));
      parts.headers[header] = signed(token);
      return token;
    },
    refresh: async () => false,
    learn(token, to, response) {
      if (token === undefined) return false;
      learn(token, to, response);
      const pool = poolFor(to);
      const own = quotaOf(token, pool);
      return (
        own?.tracked === true &&
        own.remaining <= 0 &&
        tokens().some((other) => other !== token && (quotaOf(other, pool)?.remaining ?? 0) > 0)
      );
    },
  };
}

function tokensOf(context: Context, component: Component): string[] {
  const written = component["tokens"];
  const delimiter = optionalText(component, "token_delimiter") ?? ",";
  const texts =
    typeof written === "string"
      ? text(context, component, written).split(delimiter)
      : list(written).map((each) => text(context, component, each));
  const tokens = [...new Set(texts.map((token) => token.trim()))].filter((token) => token !== "" && token !== "None");
  if (tokens.length === 0) throw new MagicError("validation_failed", "the configuration has no token");
  return tokens;
}

function poolOf(component: Component): Pool {
  const matchers = children(component, "matchers").map(matcherOf);
  return {
    name: optionalText(component, "name") ?? "",
    component,
    matches: matchers.length > 0 ? (to) => matchers.some((each) => each(to)) : undefined,
    exhausting: list(component["exhaustion_status_codes"]).map(Number),
  };
}

const noQuota = (): Quota => ({ remaining: 0, resetAt: 0, limit: 0, tracked: false });

function quotaIn(answer: unknown, { name, component }: Pool, { clock }: Context): Quota {
  const at = (field: string): unknown => {
    const path = list(component[field]).map(String);
    const found = dpathOne(answer, path);
    if (found === undefined || isRecord(found))
      throw new MagicError("upstream_error", `the quota of ${name} has no ${path.join(".")} (TokenQuota.${field})`);
    return found;
  };
  const count = (field: string): number => {
    const found = Number(at(field));
    if (Number.isFinite(found)) return found;
    throw new MagicError("upstream_error", `the quota of ${name} is no number (TokenQuota.${field})`);
  };
  const remaining = count("remaining_path");
  const limit = component["limit_path"] ? count("limit_path") : remaining;
  const until = untilSeconds(String(at("reset_path")), clock.now()) ?? 0;
  return { remaining, limit, resetAt: clock.now() + until * 1000, tracked: true };
}

function headersOf(
  { component, exhausting }: Pool,
  { headers, status }: HttpResponse,
  now: number,
): Partial<Record<"remaining" | "resetAt" | "limit", number | undefined>> {
  const written = (field: string): string | undefined => headers[(optionalText(component, field) ?? "").toLowerCase()];
  const count = (field: string): number | undefined => {
    const value = written(field);
    return value !== undefined && /^\s*-?\d+\s*$/.test(value) ? Number(value) : undefined;
  };
  const until = untilSeconds(written("reset_header") ?? "", now);
  return {
    remaining: count("remaining_header") ?? (exhausting.includes(status) ? 0 : undefined),
    resetAt: until === undefined ? undefined : now + until * 1000,
    limit: count("limit_header"),
  };
}
