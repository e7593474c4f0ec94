// Several tokens, each with calls of its own.
import { expect, test } from "vitest";
import { json, manifest, read, vendor } from "./one-stream.ts";

interface Account {
  remaining: number;
  /** In how many seconds there are more; undefined: the vendor's quota endpoint is not there. */
  reset?: number;
}

/** A vendor that counts the calls of each token, with three pages. What was asked: `token path`. */
async function counting(accounts: Record<string, Account>, more: { headers?: boolean; graphql?: number } = {}) {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    const token = request.headers.authorization?.replace(/^token /, "") ?? "";
    const account = accounts[token] ?? { remaining: 0 };
    asked.push(`${token} ${request.at.pathname}`);
    const now = Math.floor(Date.now() / 1000);
    if (request.at.pathname === "/quota") {
      if (account.reset === undefined) return json(response, {}, 404);
      const reset = now + account.reset;
      const own = { remaining: account.remaining, reset, limit: 100 };
      return json(response, { core: own, graphql: { ...own, remaining: more.graphql ?? 0 } });
    }
    const headers = { "X-Remaining": String(account.remaining - 1), "X-Reset": String(now + (account.reset ?? 0)) };
    if (account.remaining <= 0)
      return json(response, {}, 403, { ...headers, "X-Remaining": "0", "retry-after": "900" });
    account.remaining--;
    const page = Number(request.at.searchParams.get("page") ?? 1);
    json(response, { items: page < 4 ? [{ id: page }] : [] }, 200, more.headers ? headers : {});
  });
  const told = more.headers
    ? { remaining_header: "X-Remaining", reset_header: "X-Reset", exhaustion_status_codes: [403] }
    : {};
  const quota = (name: string, root: string, rest: object = {}) => ({
    ...{ type: "TokenQuota", name, remaining_path: [root, "remaining"], reset_path: [root, "reset"] },
    ...{ limit_path: [root, "limit"], ...told, ...rest },
  });
  const graphql = { matchers: [{ type: "HttpRequestRegexMatcher", url_path_pattern: "/graphql" }] };
  const source = (path = "/items") =>
    manifest(origin, {
      requester: {
        path,
        authenticator: {
          ...{ type: "RateLimitedMultipleTokenAuthenticator", tokens: "{{ config['tokens'] }}", auth_method: "token" },
          quota_status_source: { type: "QuotaStatusSource", url: `${origin}/quota`, unavailable_status_codes: [404] },
          quotas: [quota("core", "core"), quota("graphql", "graphql", graphql)],
          ...{ max_wait_time: "PT10M", budget_min_reserve: 0, budget_reserve_fraction: 0 },
        },
        error_handler: {
          type: "DefaultErrorHandler",
          response_filters: [{ type: "HttpResponseFilter", http_codes: [403], action: "RATE_LIMITED" }],
        },
      },
      paginator: {
        page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
        pagination_strategy: { type: "PageIncrement", start_from_page: 1, page_size: 1 },
      },
    });
  return { source, asked };
}

const ids = [1, 2, 3].map((id) => ({ id }));
const config = { tokens: "a, b" };

test("a token is used until its calls are spent, then the next one", async () => {
  const { source, asked } = await counting({ a: { remaining: 2, reset: 600 }, b: { remaining: 9, reset: 600 } });
  expect((await read(source(), { config, waits: [] })).records).toEqual(ids);
  expect(asked).toEqual(["a /quota", "b /quota", "a /items", "a /items", "b /items", "b /items"]);
});

test("what answers say of a token's calls counts: the next one does not wait for it", async () => {
  const accounts = { a: { remaining: 9, reset: 600 }, b: { remaining: 9, reset: 600 } };
  const { source, asked } = await counting(accounts, { headers: true });
  const waits: number[] = [];
  const onRecords = (): void => {
    // Somebody else has used it up.
    accounts.a.remaining = 0;
  };
  expect((await read(source(), { config, waits, onRecords })).records).toEqual(ids);
  expect(asked.slice(2)).toEqual(["a /items", "a /items", "b /items", "b /items", "b /items"]);
  expect(waits).toEqual([]);
});

test("when all are spent, the earliest reset is waited for, no longer than the manifest says", async () => {
  const spent = { a: { remaining: 0, reset: 500 }, b: { remaining: 0, reset: 300 } };
  const { source } = await counting(spent);
  const waits: number[] = [];
  const refill = (list: number[]) =>
    new Proxy(list, {
      set: (target, key, value) => {
        spent.b.remaining = 9;
        return Reflect.set(target, key, value);
      },
    });
  expect((await read(source(), { config, waits: refill(waits) })).records).toEqual(ids);
  expect(waits).toEqual([expect.closeTo(300, -1)]);
  const { source: long } = await counting({ a: { remaining: 0, reset: 5000 }, b: { remaining: 0, reset: 3000 } });
  await expect(read(long(), { config, waits: [] })).rejects.toThrow("the calls of all tokens are spent (core)");
});

test("a reset that is always over ends the waiting when the manifest says, and a count that is no number at once", async () => {
  const over = await counting({ a: { remaining: 0, reset: -60 } });
  const waits: number[] = [];
  const only = { config: { tokens: "a" }, waits };
  await expect(read(over.source(), only)).rejects.toThrow("the calls of all tokens are spent (core)");
  expect(waits.reduce((sum, each) => sum + each, 0)).toBeCloseTo(600, -1);
  expect(waits.length).toBeLessThan(125);
  const broken = await counting({ a: { remaining: "many" as never, reset: 60 } });
  await expect(read(broken.source(), only)).rejects.toThrow("the quota of core is no number");
});

test("without patience a reset that is over is still asked about once", async () => {
  let told = 0;
  const account = {
    reset: -60,
    get remaining() {
      return told++ === 0 ? 0 : 5;
    },
    set remaining(_left: number) {},
  };
  const { source } = await counting({ a: account });
  const hasty = source().replace("PT10M", "PT0S");
  expect((await read(hasty, { config: { tokens: "a" }, waits: [] })).records).toHaveLength(3);
});

test("each pool has its own calls; where the vendor counts none, tokens take turns", async () => {
  const { source } = await counting({ a: { remaining: 9, reset: 5000 } });
  await expect(read(source("/graphql"), { config: { tokens: "a" }, waits: [] })).rejects.toThrow("(graphql)");
  const { source: free, asked } = await counting({ a: { remaining: 9 }, b: { remaining: 9 } });
  expect((await read(free(), { config, waits: [] })).records).toEqual(ids);
  expect(asked.slice(2)).toEqual(["a /items", "b /items", "a /items", "b /items"]);
  await expect(read(free(), { config: {}, waits: [] })).rejects.toThrow("the configuration has no token");
});
