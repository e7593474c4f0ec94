// Reports that a vendor prepares: how jobs are begun, watched, downloaded and tidied up.
import type { IncomingMessage, ServerResponse } from "node:http";
import { deflateSync, gzipSync } from "node:zlib";
import { Agent } from "undici";
import { expect, test } from "vitest";
import { createConnector } from "#daemon/integrations/connectors/declarative/connector.ts";
import { cursor, day, json, manifest, read, vendor } from "./one-stream.ts";

interface Job {
  readonly number: number;
  /** How often it was asked for. */
  readonly polls: number;
}

interface Reports {
  readonly status?: (job: Job, response: ServerResponse) => string | undefined;
  readonly files?: (origin: string, number: number) => unknown;
  readonly download?: (request: IncomingMessage & { at: URL }, response: ServerResponse) => void;
  readonly other?: (request: IncomingMessage & { at: URL }, response: ServerResponse) => void;
}

const to = (origin: string, path: string, http_method = "GET", more: object = {}) => ({
  ...{ type: "HttpRequester", url_base: origin, path, http_method },
  ...more,
});
const at = (...field_path: string[]) => ({ type: "DpathExtractor", field_path });

/** A vendor of reports, and a manifest that reads them. What was asked of it: `METHOD path body`. */
async function reports(
  { status, files, download, other }: Reports,
  retriever: (origin: string) => Record<string, unknown> = () => ({}),
): Promise<{ source: string; asked: string[]; origin: string }> {
  const asked: string[] = [];
  const polls = new Map<number, number>();
  const origin = await vendor((request, response) => {
    asked.push([request.method, request.url, request.body].filter(Boolean).join(" "));
    const [, kind, id] = request.at.pathname.split("/");
    const number = Number(id);
    if (request.url === "/jobs") {
      polls.set(polls.size + 1, 0);
      json(response, { id: polls.size }, 200, { "X-Report-ID": `r${polls.size}` });
    } else if (kind === "jobs" && request.method === "GET") {
      polls.set(number, (polls.get(number) ?? 0) + 1);
      const said = status ? status({ number, polls: polls.get(number) ?? 0 }, response) : "done";
      const list = files ? files(origin, number) : [`${origin}/files/${number}`];
      if (said !== undefined) json(response, { status: said, files: list, out: `o${number}` });
    } else if (kind === "files") {
      if (download) download(request, response);
      else json(response, [{ id: number }]);
    } else if (other) other(request, response);
    else json(response, {});
  });
  const source = JSON.parse(manifest(origin));
  const words = { running: ["busy"], completed: ["done"], failed: ["bad"], timeout: ["late"], skipped: ["none"] };
  source.streams[0].retriever = {
    type: "AsyncRetriever",
    status_mapping: { type: "AsyncJobStatusMap", ...words },
    status_extractor: at("status"),
    download_target_extractor: at("files"),
    record_selector: { type: "RecordSelector", extractor: at() },
    creation_requester: to(origin, "/jobs", "POST", { request_headers: { "X-Scope-ID": "s1" } }),
    polling_requester: to(origin, "/jobs/{{ creation_response.id }}"),
    download_requester: to("", "{{ download_target }}"),
    ...retriever(origin),
  };
  return { source: JSON.stringify(source), asked, origin };
}

test("an asynchronous job: created, asked for until it is done, its addresses asked for, downloaded, deleted", async () => {
  const { source, asked } = await reports(
    {
      status: ({ polls }) => (polls < 2 ? "busy" : "done"),
      download: (request, response) => response.end(`id,v\n${request.url?.slice(-1)},x\n`),
      other: (request, response) =>
        json(response, { urls: [1, 2].map((n) => `http://${request.headers.host}/files/${n}`) }),
    },
    (origin) => ({
      creation_requester: to(origin, "/jobs", "POST", { request_body_json: { kind: "items" } }),
      download_target_extractor: at("urls"),
      download_target_requester: to(origin, "/out/{{ polling_response.out }}"),
      download_requester: to("", "", "GET", { url_base: "{{ download_target }}" }),
      delete_requester: to(origin, "/jobs/{{ creation_response.id }}", "DELETE"),
      download_decoder: { type: "CsvDecoder" },
    }),
  );
  const { records } = await read(source, { waits: [] });
  expect(records).toEqual(["1", "2"].map((id) => ({ id, v: "x" })));
  const paths = ["GET /jobs/1", "GET /jobs/1", "GET /out/o1", "GET /files/1", "GET /files/2", "DELETE /jobs/1"];
  expect(asked).toEqual(['POST /jobs {"kind":"items"}', ...paths]);
});

test("what cursors and routers put into requests goes into none of a job's: its template says what it is for", async () => {
  const option = (field_name: string) => ({ type: "RequestOption", inject_into: "request_parameter", field_name });
  const { source, asked } = await reports({}, (origin) => ({
    partition_router: { ...partitioned("a"), request_option: option("p") },
    creation_requester: to(origin, "/jobs", "POST", {
      request_body_json: { p: "{{ stream_partition.p }}", from: "{{ stream_interval.start_time }}" },
    }),
  }));
  const made = JSON.parse(source);
  made.streams[0].incremental_sync = { ...cursor, start_time_option: option("since") };
  await read(JSON.stringify(made), { waits: [] });
  expect(asked).toEqual([`POST /jobs {"p":"a","from":"${day("2026-01-01")}"}`, "GET /jobs/1", "GET /files/1"]);
});

test("a job that failed is begun again after the wait that the manifest names; one that is late is ended first", async () => {
  const waits: number[] = [];
  const { source, asked } = await reports(
    { status: ({ number }) => ["", "bad", "late"][number] ?? "done" },
    (origin) => ({
      ...{ failed_retry_wait_time_in_seconds: 300 },
      abort_requester: to(origin, "/abort/{{ creation_response.id }}", "POST"),
    }),
  );
  expect((await read(source, { waits })).records).toEqual([{ id: 3 }]);
  expect(asked.filter((each) => !each.startsWith("GET"))).toEqual([
    "POST /jobs",
    "POST /jobs",
    "POST /abort/2",
    "POST /jobs",
  ]);
  expect(waits).toEqual([300]);
});

test("a job that nobody waits for any more is ended, also where the run is told to stop", async () => {
  const ending = (origin: string) => ({ abort_requester: to(origin, "/abort/{{ creation_response.id }}", "POST") });
  const lost = await reports({ status: () => "gone" }, ending);
  await expect(read(lost.source, { waits: [] })).rejects.toThrow("'gone' is not in the status_mapping");
  expect(lost.asked.at(-1)).toBe("POST /abort/1");
  const run = new AbortController();
  const status = () => {
    run.abort(new Error("stop"));
    return "busy";
  };
  const stopped = await reports({ status }, ending);
  const connector = createConnector(stopped.source, { config: {}, dispatcher: new Agent(), signal: run.signal });
  const reading = (await connector.stream("items")).read();
  await expect(Array.fromAsync(reading)).rejects.toThrow("stop");
  expect(stopped.asked.at(-1)).toBe("POST /abort/1");
});

const partitioned = (...values: string[]) => ({ type: "ListPartitionRouter", cursor_field: "p", values });

test("where the jobs of ten partitions fail, those of the others are ended, and those that waited are not begun", async () => {
  const { source, asked } = await reports({ status: ({ number }) => (number === 1 ? "busy" : "gone") }, (origin) => ({
    abort_requester: to(origin, "/abort/{{ creation_response.id }}", "POST"),
    partition_router: partitioned(..."abcdefghijklmn"),
  }));
  const two = JSON.stringify({ ...JSON.parse(source), max_concurrent_async_job_count: 2 });
  await expect(read(two, { waits: [], concurrency: 3 })).rejects.toThrow("'gone' is not in the status_mapping");
  const begun = asked.filter((each) => each === "POST /jobs");
  expect(begun).toHaveLength(11);
  const ended = asked.filter((each) => each.startsWith("POST /abort/"));
  expect(ended.toSorted()).toEqual(begun.map((_, at) => `POST /abort/${at + 1}`).toSorted());
});

test("a partition whose job fails keeps nobody from the others' reports; the read fails once they were read", async () => {
  const { source } = await reports({ status: ({ number }) => ([2, 3, 4].includes(number) ? "bad" : "done") }, () => ({
    partition_router: partitioned("a", "b", "c"),
  }));
  const records: unknown[] = [];
  const told: string[] = [];
  const onRecords = (page: unknown[]) => void records.push(...page);
  const reading = read(source, { waits: [], concurrency: 1, onRecords, told });
  await expect(reading).rejects.toThrow("the job ended as 'failed' 3 times");
  expect(records).toEqual([{ id: 1 }, { id: 5 }]);
  expect(told.join()).toContain("a partition is left out");
});

test("a job that the vendor does not take is asked for again, unless it is the credentials that are refused", async () => {
  let asked = 0;
  const refusals = (statuses: readonly number[]) =>
    vendor((request, response) => {
      if (request.method === "POST") {
        const status = statuses[asked++];
        if (status !== undefined) json(response, { error: "one report at a time" }, status);
        else json(response, { id: 1 });
      } else json(response, request.url === "/jobs/1" ? { status: "done", files: [] } : []);
    });
  const source = async (statuses: readonly number[]): Promise<string> => {
    const origin = await refusals(statuses);
    asked = 0;
    return (await reports({}, () => ({ creation_requester: to(origin, "/jobs", "POST") }))).source;
  };
  const waits: number[] = [];
  await read(await source([400, 400]), { waits });
  expect([asked, waits.slice(0, 2)]).toEqual([3, [5, 5]]);
  await expect(read(await source([400, 400, 400]), { waits: [] })).rejects.toThrow("one report at a time");
  await expect(read(await source([403]), { waits: [] })).rejects.toThrow("403");
  expect(asked).toBe(1);
});

test("a status that the manifest takes for two is refused", async () => {
  const status_mapping = { running: ["busy"], completed: ["done", "busy"], failed: [], timeout: [] };
  const { source } = await reports({}, () => ({ status_mapping }));
  await expect(read(source)).rejects.toThrow("status_mapping has 'busy' twice");
});

test("an answer that is to be ignored while a job is asked for leaves the job running", async () => {
  const early = (response: ServerResponse): undefined => void json(response, { detail: "not yet" }, 404);
  const ignored = { type: "HttpResponseFilter", http_codes: [404], action: "IGNORE" };
  const { source } = await reports(
    { status: ({ polls }, response) => (polls < 3 ? early(response) : "done") },
    (origin) => ({
      polling_requester: to(origin, "/jobs/{{ creation_response.id }}", "GET", {
        error_handler: { type: "DefaultErrorHandler", response_filters: [ignored] },
      }),
    }),
  );
  expect((await read(source, { waits: [] })).records).toEqual([{ id: 1 }]);
});

test("a page of a download is as long as its list, whatever the selector's own path", async () => {
  const { source } = await reports(
    {
      download: (request, response) =>
        json(response, request.at.searchParams.has("o") ? [{ id: 3 }] : [{ id: 1 }, { id: 2 }]),
    },
    () => ({
      record_selector: { type: "RecordSelector", extractor: at("elsewhere") },
      download_paginator: {
        type: "DefaultPaginator",
        page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "o" },
        pagination_strategy: { type: "OffsetIncrement", page_size: 2 },
      },
    }),
  );
  expect((await read(source)).records).toEqual([1, 2, 3].map((id) => ({ id })));
});

test("a report's file is read however it is compressed; what pandas takes for nothing is null, or only what is empty", async () => {
  const text = "id,v\n1,NA\n2,\n3,a\0b\n";
  const rows = (na: unknown) => [
    { id: "1", v: na },
    { id: "2", v: null },
    { id: "3", v: "ab" },
  ];
  for (const [body, preserve, na] of [
    [text, false, null],
    [gzipSync(text), false, null],
    [deflateSync(text), true, "NA"],
  ] as const) {
    const extractor = { type: "ResponseToFileExtractor", ...(preserve && { preserve_na_values: true }) };
    const { source } = await reports({ download: (_request, response) => void response.end(body) }, () => ({
      download_extractor: extractor,
    }));
    expect((await read(source)).records).toEqual(rows(na));
  }
});

test("a report's rows come some at a time, and so do those of a page of lines, which is one page all the same", async () => {
  const rows = Array.from({ length: 12_000 }, (_, id) => id);
  const sizes: number[] = [];
  const onRecords = (records: unknown[]) => void sizes.push(records.length);
  const { source } = await reports(
    { download: (_request, response) => void response.end(gzipSync(`id\n${rows.join("\n")}\n`)) },
    () => ({ download_decoder: { type: "GzipDecoder", decoder: { type: "CsvDecoder" } } }),
  );
  expect((await read(source, { onRecords })).records.map(({ id }) => Number(id))).toEqual(rows);
  expect(sizes.splice(0)).toEqual([5000, 5000, 2000]);
  const asked: (string | null)[] = [];
  const origin = await vendor((request, response) => {
    const after = request.at.searchParams.get("after");
    asked.push(after);
    const wide = "x".repeat(200);
    response.end(after === null ? rows.map((id) => JSON.stringify({ id, wide })).join("\n") : "");
  });
  const record_selector = { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: [] } };
  const paged = manifest(origin, {
    retriever: { decoder: { type: "JsonlDecoder" }, record_selector },
    paginator: {
      page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "after" },
      pagination_strategy: {
        ...{ type: "CursorPagination", cursor_value: "{{ last_record['id'] }}-{{ last_page_size }}" },
        stop_condition: "{{ last_page_size == 0 }}",
      },
    },
  });
  expect((await read(paged, { onRecords })).records.map(({ id }) => id)).toEqual(rows);
  expect(sizes.length).toBeGreaterThan(2);
  expect(asked).toEqual([null, "11999-12000"]);
});

test("templates see how a job was begun, in the slice too, whatever the case of a header's name", async () => {
  const slice = "stream_slice.extra_fields['creation_response']";
  const { source, asked } = await reports({ files: () => "/files/7" }, (origin) => ({
    polling_requester: to(origin, "/jobs/{{ creation_response.id }}", "GET", {
      request_parameters: {
        scope: `{{ ${slice}.request.headers['X-SCOPE-ID'] }}`,
        report: "{{ creation_response.headers['X-Report-ID'] }}",
        began: "{{ creation_response.request.url.split('/')[-1] }}",
      },
    }),
    download_requester: to(origin, `{{ ${slice}['id'] and download_target }}`),
  }));
  expect((await read(source)).records).toEqual([{ id: 7 }]);
  expect(asked[1]).toBe("GET /jobs/1?scope=s1&report=r1&began=jobs");
});

test("a download that the vendor has elsewhere is asked for without the credentials", async () => {
  const seen: (string | undefined)[] = [];
  const elsewhere = await vendor((request, response) => {
    seen.push(request.headers.authorization);
    json(response, [{ id: 1 }]);
  });
  const authenticator = { type: "BearerAuthenticator", api_token: "secret" };
  const download = (request: IncomingMessage, response: ServerResponse): void => {
    seen.push(request.headers.authorization);
    json(response, [{ id: 2 }]);
  };
  const { source, origin } = await reports(
    { files: (origin) => [`${elsewhere}/f`, `${origin}/files/1`], download },
    () => ({ download_requester: to("", "{{ download_target }}", "GET", { authenticator }) }),
  );
  const told: string[] = [];
  expect((await read(source, { told })).records).toHaveLength(2);
  expect(seen).toEqual([undefined, "Bearer secret"]);
  expect(told.join()).toContain(elsewhere);
  expect(told.join()).not.toContain(origin);
});

test("no more jobs are under way than the manifest allows", async () => {
  let running = 0;
  let most = 0;
  const { source } = await reports(
    {
      status: ({ polls }) => {
        if (polls === 1) most = Math.max(most, ++running);
        if (polls === 2) running--;
        return polls < 2 ? "busy" : "done";
      },
    },
    () => ({ partition_router: { type: "ListPartitionRouter", values: ["a", "b", "c", "d", "e"], cursor_field: "p" } }),
  );
  const counted = async (allowed: unknown): Promise<number> => {
    most = 0;
    const limited = JSON.stringify({ ...JSON.parse(source), max_concurrent_async_job_count: allowed });
    expect((await read(limited, { waits: [], concurrency: 4, config: { jobs: 2 } })).records).toHaveLength(5);
    return most;
  };
  expect(await counted("{{ config['jobs'] }}")).toBe(2);
  expect(await counted(undefined)).toBe(1);
});
