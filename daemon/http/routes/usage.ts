// GET /v1/usage: tokens and cost, summed by user, team, project, model, provider, day or controller; JSON or CSV.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { MOST_ROWS, UsageQuery, UsageReport, type UsageRow } from "#contract/wire/usage.ts";
import type { UsageSum } from "#daemon/gateway/ledger/row.ts";
import type { GatewayPipeline } from "#daemon/gateway/pipeline.ts";
import { dollarsOf } from "#daemon/gateway/pricing/price.ts";
import { rfc3339 } from "#shared/clock.ts";
import { momentOf } from "#shared/moment.ts";

export function usageRoutes(
  app: FastifyInstance,
  { gateway }: { readonly gateway: Pick<GatewayPipeline, "usage"> },
): void {
  const config = {
    scope: "usage:read",
    errors: "problem",
    surface: "core",
    produces: ["application/json", "text/csv"],
  } as const;
  const schema = {
    operationId: "getUsage",
    summary: "Tokens and cost, summed by one key",
    querystring: UsageQuery,
    response: { 200: UsageReport },
  };
  app.get<{ Querystring: UsageQuery }>("/v1/usage", { config, schema: schema as object }, async (request, reply) => {
    const { by = "model", since: from, until: to, environment, format = formOf(request), ...rest } = request.query;
    const { limit = MOST_ROWS, starting_after: cursor, ...where } = rest;
    const since = timeOf(from, "/since");
    const until = timeOf(to, "/until");
    const { type, environment: own } = request.principal;
    // Keys and clients belong to one environment; whoever works on this machine sees both unless they name one.
    const seen = type === "local" || type === "admin" ? environment : own;
    const hidden = environment !== undefined && environment !== seen;
    const after = placeOf(cursor);
    const query = { by, since, until, environment: seen, where, limit: limit + 1, after };
    const sums = hidden ? [] : await gateway.usage(query);
    const last = sums.length > limit ? sums[limit - 1] : undefined;
    const data = sums.slice(0, limit).map(rowOf);
    const next_cursor = last ? cursorOf(last) : null;
    if (next_cursor) reply.header("link", `<${nextPage(request.url, next_cursor)}>; rel="next"`);
    if (format === "csv") return reply.type("text/csv; charset=utf-8").serializer(String).send(csvOf(by, data));
    return { object: "list", by, data, has_more: last !== undefined, next_cursor };
  });
}

// Who accepts CSV and no JSON need not say it twice.
function formOf({ headers: { accept = "" } }: FastifyRequest): "json" | "csv" {
  return /\btext\/csv\b/i.test(accept) && !/json|\*\/\*/i.test(accept) ? "csv" : "json";
}

// In the one form that the ledger's own times have: they are compared as texts.
function timeOf(text: string | undefined, pointer: string): string | undefined {
  if (text === undefined) return undefined;
  const at = momentOf(text);
  if (at !== null) return rfc3339(at);
  const detail = "is a day, or a time in RFC 3339";
  throw new MagicError("validation_failed", undefined, { problems: [{ pointer, code: "format", detail }] });
}

// Where a page ended, in the order of its rows: what a key has cost may have grown since.
function cursorOf({ key, cost_pico }: UsageSum): string {
  return Buffer.from(JSON.stringify([key, cost_pico])).toString("base64url");
}

function placeOf(cursor: string | undefined): Pick<UsageSum, "key" | "cost_pico"> | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [key, cost_pico] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
    if ((key === null || typeof key === "string") && typeof cost_pico === "string" && /^\d{1,40}$/.test(cost_pico))
      return { key, cost_pico };
  } catch {
    // As one that was made up.
  }
  const detail = "is a next_cursor of this list";
  throw new MagicError("validation_failed", undefined, {
    problems: [{ pointer: "/starting_after", code: "cursor", detail }],
  });
}

function nextPage(url: string, cursor: string): string {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  searchParams.set("starting_after", cursor);
  return `${pathname}?${searchParams}`;
}

function rowOf(sum: UsageSum): UsageRow {
  return {
    key: sum.key,
    requests: Number(sum.requests),
    prompt_tokens: Number(sum.prompt_tokens),
    completion_tokens: Number(sum.completion_tokens),
    cost_usd: dollarsOf(BigInt(sum.cost_pico)),
    cached_tokens: Number(sum.cached_tokens),
    reasoning_tokens: Number(sum.reasoning_tokens),
    unpriced_requests: Number(sum.unpriced),
  };
}

// RFC 4180. A cell that a spreadsheet would take for a formula is quoted with an apostrophe.
function csvOf(by: string, rows: readonly UsageRow[]): string {
  const columns = [
    "requests",
    "prompt_tokens",
    "completion_tokens",
    "cost_usd",
    "cached_tokens",
    "reasoning_tokens",
    "unpriced_requests",
  ] as const;
  const cell = (text: string) => {
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const lines = rows.map((row) => [cell(row.key ?? ""), ...columns.map((column) => String(row[column]))].join(","));
  return `${[[by, ...columns].join(","), ...lines].join("\r\n")}\r\n`;
}
