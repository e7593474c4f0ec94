// GET /v1/logs: the log as a list, or as ndjson without an end of its own making for callers that accept that. Oldest first.
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { LogList, LogQuery } from "#contract/wire/logs.ts";
import type { LogLine } from "#daemon/telemetry/log.ts";
import { matcher } from "#daemon/telemetry/log-filter.ts";
import type { LogHistory } from "#daemon/telemetry/log-history.ts";
import type { Clock } from "#shared/clock.ts";
import { filterOf, startOf } from "../log-query.ts";

export interface LogServices {
  readonly history: LogHistory;
  readonly clock: Clock;
}

const NDJSON = "application/x-ndjson";

export function logRoutes(app: FastifyInstance, { history, clock }: LogServices): void {
  const config = { scope: "logs:read", surface: "core", quiet: true, produces: ["application/json", NDJSON] } as const;
  const schema = { operationId: "listLogs", querystring: LogQuery, response: { 200: LogList } };
  app.get<{ Querystring: LogQuery }>("/v1/logs", { config, schema }, async (request, reply) => {
    const { query } = request;
    const lines = wanted(history.since(startOf(query, clock)), matcher(filterOf(query, request.principal)));
    if (request.headers.accept?.includes(NDJSON)) return reply.type(NDJSON).send(Readable.from(asText(lines)));
    return reply.type("application/json; charset=utf-8").send(await listOf(lines, query.limit ?? 1_000, request));
  });
}

// The last `limit` lines when no start is named: what just happened is what people look for.
async function listOf(lines: AsyncIterable<LogLine>, limit: number, request: FastifyRequest): Promise<string> {
  const { since, after } = request.query as LogQuery;
  const fromStart = since !== undefined || after !== undefined;
  let found: LogLine[] = [];
  let more = false;
  for await (const line of lines) {
    if (fromStart && found.length === limit) {
      more = true;
      break;
    }
    found.push(line);
    if (found.length > 2 * limit) found = found.slice(-limit);
  }
  const shown = fromStart ? found : found.slice(-limit);
  const cursor = shown.at(-1)?.cursor ?? null;
  return `{"object":"list","data":[${shown.map(({ text }) => text).join(",")}],"has_more":${more},"next_cursor":${JSON.stringify(cursor)}}`;
}

async function* wanted(lines: AsyncIterable<LogLine>, matches: (line: LogLine) => boolean): AsyncGenerator<LogLine> {
  for await (const line of lines) if (matches(line)) yield line;
}

async function* asText(lines: AsyncIterable<LogLine>): AsyncGenerator<string> {
  for await (const { text } of lines) yield `${text}\n`;
}
