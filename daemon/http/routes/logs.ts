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
    const matches = matcher(filterOf(query, request.principal));
    const lines = wanted(history.since(startOf(query, clock)), matches);
    const page = () => chosen(lines, query, (limit) => history.stream.newest(limit, matches));
    if (request.headers.accept?.includes(NDJSON)) {
      const some = named(request, "limit") ? (await page()).shown : lines;
      return reply.type(NDJSON).send(Readable.from(asText(some)));
    }
    return reply.type("application/json; charset=utf-8").send(listOf(await page()));
  });
}

// The schema fills in a default, which is a page's: lines have none.
function named({ url }: FastifyRequest, parameter: string): boolean {
  return new URLSearchParams(url.slice(url.indexOf("?") + 1)).has(parameter);
}

interface LogPage {
  readonly shown: readonly LogLine[];
  readonly more: boolean;
}

function listOf({ shown, more }: LogPage): string {
  const cursor = shown.at(-1)?.cursor ?? null;
  return `{"object":"list","data":[${shown.map(({ text }) => text).join(",")}],"has_more":${more},"next_cursor":${JSON.stringify(cursor)}}`;
}

// The last `limit` lines when no start is named: what just happened is what people look for. Where the ring holds them, the files need not
// be read for them, which takes the daemon half a second.
async function chosen(
  lines: AsyncIterable<LogLine>,
  { since, after, limit = 1_000 }: LogQuery,
  newestHeld: (limit: number) => readonly LogLine[],
): Promise<LogPage> {
  const fromStart = since !== undefined || after !== undefined;
  const held = fromStart ? [] : newestHeld(limit);
  if (held.length === limit) return { shown: held, more: false };
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
  return { shown: fromStart ? found : found.slice(-limit), more };
}

async function* wanted(lines: AsyncIterable<LogLine>, matches: (line: LogLine) => boolean): AsyncGenerator<LogLine> {
  for await (const line of lines) if (matches(line)) yield line;
}

async function* asText(lines: AsyncIterable<LogLine> | readonly LogLine[]): AsyncGenerator<string> {
  for await (const { text } of lines) yield `${text}\n`;
}
