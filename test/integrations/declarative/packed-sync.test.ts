// Pages that are packed, pages that are not and rows that the destination refuses, in one run into a PostgreSQL.
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { declarativeSource } from "#daemon/integrations/connectors/declarative/source.ts";
import { postgresMissing, startPostgres } from "#test/postgres.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { connect, sync } from "../syncs/harness.ts";
import { json, manifest, vendor } from "./one-stream.ts";

const PAGES = 12;
const SIZE = 50;

test.skipIf(postgresMissing())(
  "of packed pages only the rows that cannot be kept are quarantined, with their reasons",
  async () => {
    const server = await startPostgres();
    onTestFinished(() => server.stop());
    const url = await server.createDatabase();
    const target = await connect(url);
    onTestFinished(() => target.end());
    await target.query(
      "CREATE TABLE items (id bigint PRIMARY KEY, price numeric CHECK (price < 900), at timestamptz, name text)",
    );
    const item = (id: number) => {
      // The first page's form differs from the column's: it takes the general way.
      const at = id <= SIZE ? "2024-01-02T03:04:05+02:00" : "2024-01-02T03:04:05Z";
      if (id === 120) return { id, price: "much", at, name: "no number" };
      if (id === 300) return { id, price: 1000.5, at, name: "dear" };
      return { id, price: id / 4, at, name: `n${id}` };
    };
    let asked = 0;
    const origin = await vendor((request, response) => {
      const page = Number(request.at.searchParams.get("page"));
      asked++;
      const items = page > PAGES ? [] : Array.from({ length: SIZE }, (_, at) => item((page - 1) * SIZE + at + 1));
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ items }));
    });
    const made = manifest(origin, {
      paginator: {
        page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
        pagination_strategy: { type: "PageIncrement", start_from_page: 1, inject_on_first_request: true },
      },
      properties: {
        id: { type: "integer" },
        price: { type: "number" },
        at: { type: "string", format: "date-time" },
        name: { type: "string" },
      },
    });
    const outcome = await sync(
      { from: "connector://shop", object: "items", to: url, table: "items" },
      {
        allow_private: [new URL(origin).host],
        columns: ["id", "price", "at", "name"],
        source: {
          url: "connector://shop",
          object: "items",
          connector: { id: "shop", manifest: JSON.parse(made), config: {} },
        },
      },
    );
    expect(outcome.error).toBeNull();
    const total = PAGES * SIZE;
    expect(outcome).toMatchObject({ records_read: total, records_synced: total - 2, records_rejected: 2 });
    expect(outcome.rejects).toMatchObject([
      { key: "120", column: "price", reason: expect.stringContaining("is no number") },
      { key: "300", reason: expect.stringContaining("items_price_check") },
    ]);
    // Each page once: what is refused is not read again.
    expect(asked).toBe(PAGES + 1);
    const expected = Array.from({ length: total }, (_, at) => item(at + 1))
      .filter(({ id }) => id !== 120 && id !== 300)
      .map(
        ({ id, price, at, name }) =>
          `(${id},${price},"${at.includes("+") ? "2024-01-02 01:04:05+00" : "2024-01-02 03:04:05+00"}",${name})`,
      );
    expect(await target.lines("items")).toEqual(expected.sort());
  },
);

test("a run that sits out the wait that its vendor asks for has not stalled, however long that is", async () => {
  let limited = false;
  const origin = await vendor((request, response) => {
    const answer = (): void => json(response, { items: [{ id: request.at.searchParams.get("p") }] });
    // What comes from the other partition meanwhile does not shorten the wait.
    if (request.at.search === "?p=b") setTimeout(answer, 200);
    else if (limited) answer();
    else {
      limited = true;
      json(response, {}, 429, { "retry-after": "1" });
    }
  });
  const partition_router = {
    ...{ type: "ListPartitionRouter", cursor_field: "p", values: ["a", "b"] },
    request_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "p" },
  };
  const made = manifest(origin, { retriever: { partition_router } });
  const connector = { id: "shop", manifest: JSON.parse(made), config: {} };
  const to = join(temporaryFolder(), "items.jsonl");
  const ends = { from: "connector://shop", object: "items", to, table: "items" };
  const outcome = await sync(ends, {
    ...{ allow_private: [new URL(origin).host], stall_timeout_s: 0.4 },
    source: { url: ends.from, object: ends.object, connector },
  });
  expect(outcome).toMatchObject({ status: "completed", records_synced: 2 });
});

test("a vendor whose answers hold nothing that is wanted has not stalled", async () => {
  const origin = await vendor((request, response) => {
    const page = Number(request.at.searchParams.get("page") ?? 0);
    response.end(JSON.stringify({ items: page < 3 ? [{ id: page }] : [] }));
  });
  const selector = { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } };
  const record_filter = { type: "RecordFilter", condition: "{{ false }}" };
  const made = manifest(origin, {
    retriever: { record_selector: { ...selector, record_filter } },
    paginator: {
      page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
      pagination_strategy: { type: "PageIncrement" },
    },
  });
  const connector = { id: "shop", manifest: JSON.parse(made), config: {} };
  const source = declarativeSource({ connector, allowPrivate: [new URL(origin).host] });
  onTestFinished(() => source.close());
  const waits = new Set<string>();
  const stream = await source.open({
    ...{ object: { schema: null, name: "items" }, mode: "full_refresh", state: null, columns: null },
    ...{ cursorField: null, allChanges: false, primaryKey: null, signal: AbortSignal.timeout(20_000) },
    waiting: (what) => void waits.add(what),
  });
  for (const partition of stream.partitions) for await (const _ of stream.read(partition));
  // Each wait that has another name is progress.
  expect(waits.size).toBeGreaterThanOrEqual(4);
});
