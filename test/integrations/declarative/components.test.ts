import { expect, test } from "vitest";
import { cursor, day, json, manifest, read, vendor } from "./one-stream.ts";

const parentOf = (origin: string, more: Record<string, unknown> = {}, sync?: Record<string, unknown>) => ({
  type: "SubstreamPartitionRouter",
  parent_stream_configs: [
    {
      ...{ type: "ParentStreamConfig", parent_key: "id", partition_field: "parent" },
      stream: {
        ...{ type: "DeclarativeStream", name: "parents", primary_key: ["id"] },
        retriever: {
          type: "SimpleRetriever",
          requester: { type: "HttpRequester", url_base: origin, path: "/parents", http_method: "GET" },
          record_selector: { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } },
        },
        ...(sync ? { incremental_sync: sync } : {}),
        schema_loader: { type: "InlineSchemaLoader", schema: { type: "object", properties: {} } },
      },
      ...more,
    },
  ],
});
const childPath = { path: "/parents/{{ stream_partition.parent }}/items" };

test("ids go into paths as URLs can have them: none is taken for a slash, and none leads to another host", async () => {
  const ids = ["auth0|5", "a\\b", "[1]", "\\\\evil.test", "ü%20?x=[y]"];
  const asked: (string | undefined)[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url);
    json(response, { items: request.url === "/parents" ? ids.map((id) => ({ id })) : [] });
  });
  const retriever = { partition_router: parentOf(origin) };
  const below = { path: "/of/{{ stream_partition.parent }}" };
  const whole = { url: `${origin}/of/{{ stream_partition.parent }}`, url_base: undefined, path: undefined };
  const expected = ["auth0%7C5", "a%5Cb", "%5B1%5D", "%5C%5Cevil.test", "%C3%BC%20?x=[y]"].map((id) => `/of/${id}`);
  for (const requester of [below, whole]) {
    await read(manifest(origin, { requester, retriever }), { concurrency: 1 });
    expect(asked.splice(0)).toEqual(["/parents", ...expected]);
  }
});

test("an incremental dependency reads parents on from their own state; children of the others keep theirs", async () => {
  let changed = [
    { id: 1, at: day("2026-01-05") },
    { id: 2, at: day("2026-01-06") },
  ];
  let children: Record<string, { id: string; at: string }[]> = {
    1: [{ id: "a", at: day("2026-01-02") }],
    2: [{ id: "b", at: day("2026-01-03") }],
  };
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(`${request.at.pathname}?${request.at.searchParams.get("since")?.slice(0, 10)}`);
    const parent = /^\/parents\/(\d)/.exec(request.at.pathname)?.[1];
    json(response, { items: parent ? children[parent] : changed });
  });
  const dependent = (on: boolean) =>
    manifest(origin, {
      requester: childPath,
      retriever: { partition_router: parentOf(origin, { incremental_dependency: on }, cursor) },
      sync: cursor,
    });
  const first = await read(dependent(true), { concurrency: 1 });
  expect(first.records.map(({ id }) => id)).toEqual(["a", "b"]);
  asked.length = 0;
  changed = [{ id: 2, at: day("2026-01-09") }];
  children = { 2: [{ id: "c", at: day("2026-01-08") }] };
  const second = await read(dependent(true), { state: first.state, concurrency: 1 });
  expect(asked).toEqual(["/parents?2026-01-06", "/parents/2/items?2026-01-03"]);
  expect(second.records.map(({ id }) => id)).toEqual(["c"]);
  asked.length = 0;
  changed = [
    { id: 1, at: day("2026-01-10") },
    { id: 2, at: day("2026-01-09") },
  ];
  children = { 1: [], 2: [] };
  await read(dependent(true), { state: second.state, concurrency: 1 });
  expect(asked).toEqual(["/parents?2026-01-09", "/parents/1/items?2026-01-02", "/parents/2/items?2026-01-08"]);
  asked.length = 0;
  await read(dependent(false), { state: second.state, concurrency: 1 });
  expect(asked[0]).toBe("/parents?2026-01-01");
});

test("a state from before parents had theirs has them read on from where all children were", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(`${request.at.pathname}?${request.at.searchParams.get("since")?.slice(0, 10)}`);
    json(response, { items: [{ id: 1, changed: day("2026-01-09"), at: day("2026-01-08") }] });
  });
  const router = parentOf(origin, { incremental_dependency: true }, { ...cursor, cursor_field: "changed" });
  const source = manifest(origin, { requester: childPath, retriever: { partition_router: router }, sync: cursor });
  const at = { at: day("2026-01-04") };
  for (const state of [at, { use_global_cursor: true, state: at, lookback_window: 86_400 }, { state: at, states: [] }])
    await read(source, { state });
  expect(asked).toEqual([
    ...["/parents?2026-01-04", "/parents/1/items?2026-01-04"],
    ...["/parents?2026-01-03", "/parents/1/items?2026-01-03"],
    ...["/parents?2026-01-04", "/parents/1/items?2026-01-04"],
  ]);
  const own = { states: [{ partition: { parent: 1, parent_slice: {} }, cursor: at }] };
  await read(source, { state: own });
  expect(asked.slice(-2)).toEqual(["/parents?2026-01-01", "/parents/1/items?2026-01-04"]);
});

test("a parent of two chains is asked once, unless it says otherwise or there is no room; the state is the same", async () => {
  const asked: string[] = [];
  const pad = "x".repeat(9_000_000);
  let large = false;
  const origin = await vendor((request, response) => {
    const since = request.at.searchParams.get("since")?.slice(0, 10);
    asked.push(`${request.at.pathname}${since ? `?${since}` : ""}`);
    const { pathname } = request.at;
    const items = pathname.endsWith("/items")
      ? [{ id: pathname, at: day("2026-01-02") }]
      : [1, 2].map((id) => ({ id: `${pathname.at(1)}${id}`, at: day("2026-01-05"), ...(large && { pad }) }));
    json(response, { items });
  });
  const config = (path: string, field: string, requester = {}, router?: object, sync?: object, dependency = false) => ({
    ...{ type: "ParentStreamConfig", parent_key: "id", partition_field: field, incremental_dependency: dependency },
    stream: {
      ...{ type: "DeclarativeStream", name: path, primary_key: ["id"] },
      retriever: {
        type: "SimpleRetriever",
        requester: { type: "HttpRequester", url_base: origin, path, http_method: "GET", ...requester },
        record_selector: { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } },
        ...(router ? { partition_router: router } : {}),
      },
      ...(sync ? { incremental_sync: sync } : {}),
      schema_loader: { type: "InlineSchemaLoader", schema: { type: "object", properties: {} } },
    },
  });
  const of = (...parents: object[]) => ({ type: "SubstreamPartitionRouter", parent_stream_configs: parents });
  const top = (requester = {}) => config("/top", "t", requester);
  const source = (requester: object, dependency = false) =>
    manifest(origin, {
      requester: { path: "/{{ stream_partition.a }}/{{ stream_partition.b }}/items" },
      retriever: {
        partition_router: [
          of(config("/a{{ stream_partition.t }}", "a", requester, of(top(requester)), cursor, dependency)),
          of(config("/b{{ stream_partition.t }}", "b", requester, of(top(requester)))),
        ],
      },
      sync: cursor,
    });
  const times = () => {
    const counts: Record<string, number> = {};
    for (const each of asked.splice(0)) if (!each.includes("items")) counts[each] = (counts[each] ?? 0) + 1;
    return counts;
  };
  const once = await read(source({}), { concurrency: 1 });
  expect(times()).toEqual({ "/top": 1, "/at1?2026-01-01": 1, "/at2?2026-01-01": 1, "/bt1": 1, "/bt2": 1 });
  const again = await read(source({ use_cache: false }), { concurrency: 1 });
  expect(times()).toEqual({ "/top": 5, "/at1?2026-01-01": 1, "/at2?2026-01-01": 1, "/bt1": 4, "/bt2": 4 });
  expect(once).toEqual(again);
  // What a parent is read on from is another question: only what is the same is asked once.
  const first = await read(source({}, true), { concurrency: 1 });
  times();
  await read(source({}, true), { concurrency: 1, state: first.state });
  expect(times()).toEqual({ "/top": 1, "/at1?2026-01-05": 1, "/at2?2026-01-05": 1, "/bt1": 1, "/bt2": 1 });
  large = true;
  expect((await read(source({}), { concurrency: 1 })).records).toEqual(once.records);
  // 18 MB each: one is kept.
  expect(times()).toEqual({ "/top": 1, "/at1?2026-01-01": 1, "/at2?2026-01-01": 1, "/bt1": 4, "/bt2": 4 });
});

test("a read that fails keeps the parents' old state", async () => {
  let broken = true;
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(`${request.at.pathname}?${request.at.searchParams.get("since")?.slice(0, 10)}`);
    if (request.at.pathname === "/parents")
      json(response, { items: [1, 2].map((id) => ({ id, at: day("2026-01-05") })) });
    else if (broken && request.at.pathname.includes("/2/")) json(response, {}, 403);
    else json(response, { items: [{ id: request.at.pathname, at: day("2026-01-02") }] });
  });
  const source = manifest(origin, {
    requester: childPath,
    retriever: { partition_router: parentOf(origin, { incremental_dependency: true }, cursor) },
    sync: cursor,
  });
  const states: unknown[] = [];
  await expect(read(source, { concurrency: 1, onState: (state) => states.push(state) })).rejects.toThrow("403");
  broken = false;
  asked.length = 0;
  const { records } = await read(source, { state: states.at(-1), concurrency: 1 });
  expect(asked[0]).toBe("/parents?2026-01-01");
  expect(records.map(({ id }) => id)).toContain("/parents/2/items");
});

test("a parent that is read for each of several regions goes on from where the first one's reading ended", async () => {
  let parents = [{ id: 1, at: day("2026-01-05") }];
  const since: (string | undefined)[] = [];
  const origin = await vendor((request, response) => {
    if (request.at.pathname !== "/parents") {
      // A child of the first region, and with it its parent, changes once the region was read.
      parents = [{ id: 1, at: day("2026-01-07") }];
      json(response, { items: [{ id: request.at.pathname, at: day("2026-01-02") }] });
      return;
    }
    since.push(request.at.searchParams.get("since")?.slice(0, 10));
    json(response, { items: parents });
  });
  const router = parentOf(origin, { incremental_dependency: true }, cursor);
  for (const { stream } of router.parent_stream_configs)
    Object.assign(stream.retriever.requester, { use_cache: false });
  const regions = { type: "ListPartitionRouter", cursor_field: "region", values: ["a", "b"] };
  const requester = { path: "/{{ stream_partition.region }}/{{ stream_partition.parent }}/items" };
  const source = manifest(origin, { requester, retriever: { partition_router: [regions, router] }, sync: cursor });
  const { state } = await read(source, { concurrency: 1 });
  await read(source, { concurrency: 1, state });
  expect(new Set(since)).toEqual(new Set(["2026-01-01", "2026-01-05"]));
});

test("the first page of children that stand in their parent's record is not asked for", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    if (request.at.pathname === "/parents")
      json(response, {
        items: [
          { id: "p", lines: { items: [{ id: 1 }], next: "n2" } },
          { id: "q", lines: { items: [{ id: 3 }] } },
          { id: "r" },
        ],
      });
    else json(response, { items: [{ id: 2 }] });
  });
  const source = manifest(origin, {
    requester: childPath,
    retriever: { partition_router: parentOf(origin, { lazy_read_pointer: ["lines"] }) },
    paginator: {
      page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "after" },
      pagination_strategy: {
        ...{ type: "CursorPagination", cursor_value: "{{ response.get('next') }}" },
        stop_condition: "{{ not response.get('next') }}",
      },
    },
  });
  const { records } = await read(source, { concurrency: 1 });
  expect(records.map(({ id }) => id)).toEqual([1, 2, 3]);
  expect(asked).toEqual(["/parents", "/parents/p/items?after=n2"]);
});

test("children that stood in their parent's record are asked for where they are read on", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    const { pathname, searchParams } = request.at;
    asked.push(`${pathname} ${searchParams.get("since")?.slice(0, 10)}`);
    const items = [{ id: 1, at: day("2026-01-05") }];
    json(response, { items: pathname === "/parents" ? [{ id: "p", lines: { items } }] : items });
  });
  const source = manifest(origin, {
    requester: childPath,
    retriever: { partition_router: parentOf(origin, { lazy_read_pointer: ["lines"] }) },
    sync: cursor,
  });
  const { state } = await read(source);
  await read(source, { state });
  expect(asked).toEqual(["/parents undefined", "/parents undefined", "/parents/p/items 2026-01-05"]);
});

test("parents with one key are one partition of a stream that has a cursor", async () => {
  let reads = 0;
  const origin = await vendor((request, response) => {
    if (request.at.pathname !== "/parents") reads++;
    json(response, {
      items: [{ id: 7, at: day("2026-01-05") }].concat(
        request.at.pathname === "/parents" ? [{ id: 7, at: day("2026-01-06") }] : [],
      ),
    });
  });
  const { records } = await read(
    manifest(origin, { requester: childPath, retriever: { partition_router: parentOf(origin) }, sync: cursor }),
  );
  expect([reads, records.length]).toEqual([1, 1]);
});

test("a union has each value once, and nothing but its field makes the partition", async () => {
  const origin = await vendor((request, response) => {
    if (request.at.pathname === "/parents") json(response, { items: [{ id: "a" }, { id: "b" }] });
    else json(response, { items: [{ id: request.at.pathname, at: day("2026-01-05") }] });
  });
  const router = {
    ...{ type: "UnionPartitionRouter", partition_field: "parent" },
    partition_routers: [{ type: "ListPartitionRouter", values: ["b", "c"], cursor_field: "parent" }, parentOf(origin)],
  };
  const { records, state } = await read(
    manifest(origin, { requester: childPath, retriever: { partition_router: router }, sync: cursor }),
    { concurrency: 1 },
  );
  expect(records.map(({ id }) => id)).toEqual(["/parents/b/items", "/parents/c/items", "/parents/a/items"]);
  expect((state as { partitions: { partition: unknown }[] }).partitions.map(({ partition }) => partition)).toEqual(
    ["b", "c", "a"].map((parent) => ({ parent })),
  );
});

test("fields are asked for in groups, and what the answers say of one record is put together", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    const fields = request.at.searchParams.get("fields")?.split(",") ?? [];
    if (request.at.pathname === "/fields") json(response, { items: ["a", "b", "c"].map((name) => ({ name })) });
    else {
      const page = request.at.searchParams.get("after") ?? "1";
      const inner = (id: string) => Object.fromEntries(fields.map((name) => [name, `${name}${id}`]));
      const items = ["1", "2"].map((id) => ({ id: page + id, ...inner(id), all: inner(id) }));
      json(response, { items, ...(page === "1" ? { next: "2" } : {}) });
    }
  });
  const endpoint = {
    ...{ type: "PropertiesFromEndpoint", property_field_path: ["name"] },
    retriever: {
      type: "SimpleRetriever",
      requester: { type: "HttpRequester", url_base: origin, path: "/fields", http_method: "GET" },
      record_selector: { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } },
    },
  };
  const fields = {
    ...{ type: "QueryProperties", property_list: endpoint, always_include_properties: ["z"] },
    property_chunking: { type: "PropertyChunking", property_limit_type: "property_count", property_limit: 2 },
  };
  const { records } = await read(
    manifest(origin, {
      requester: { request_parameters: { fields, fixed: "1" } },
      paginator: {
        page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "after" },
        pagination_strategy: {
          ...{ type: "CursorPagination", cursor_value: "{{ response.get('next') }}" },
          stop_condition: "{{ not response.get('next') }}",
        },
      },
    }),
  );
  expect(asked.map(decodeURIComponent)).toEqual([
    "/fields",
    "/items?fixed=1&fields=z,a,b",
    "/items?fixed=1&fields=z,c",
    "/items?fixed=1&fields=z,a,b&after=2",
    "/items?fixed=1&fields=z,c&after=2",
  ]);
  const made = (id: string) => ({ z: `z${id}`, a: `a${id}`, b: `b${id}`, c: `c${id}` });
  expect(records).toEqual(
    ["1", "2"].flatMap((page) => ["1", "2"].map((id) => ({ id: page + id, ...made(id), all: made(id) }))),
  );
});

test("a record whose key is 0 is put together too, and those without a key stay apart", async () => {
  const origin = await vendor((request, response) => {
    const field = request.at.searchParams.get("fields") ?? "";
    json(response, { items: [{ id: 0, [field]: 1 }, { id: null, [field]: 2 }, { [field]: 3 }] });
  });
  const fields = {
    ...{ type: "QueryProperties", property_list: ["a", "b"] },
    property_chunking: {
      ...{ type: "PropertyChunking", property_limit_type: "property_count", property_limit: 1 },
      record_merge_strategy: { type: "GroupByKeyMergeStrategy", key: "id" },
    },
  };
  const { records } = await read(manifest(origin, { requester: { request_parameters: { fields } } }));
  expect(records).toEqual([{ id: 0, a: 1, b: 1 }, { id: null, a: 2 }, { a: 3 }, { id: null, b: 2 }, { b: 3 }]);
});

test("of the fields to ask for those count that the schema has, as the selector calls them", async () => {
  const asked: (string | null)[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.at.searchParams.get("fields"));
    json(response, { items: [{ id: "1" }] });
  });
  const fields = {
    ...{ type: "QueryProperties", property_list: ["a", "b", "c", "properties_d"], always_include_properties: ["z"] },
    property_selector: {
      type: "JsonSchemaPropertySelector",
      transformations: [{ type: "KeysReplace", old: "in_", new: "properties_" }],
    },
  };
  const requester = { request_parameters: { fields } };
  await read(manifest(origin, { requester, properties: { id: {}, b: {}, in_d: { type: "string" } } }));
  expect(asked).toEqual(["z,b,properties_d"]);
});

test("a configuration is changed and judged as the manifest says", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    json(response, { items: [] });
  });
  const source = manifest(origin, {
    requester: {
      path: "/{{ config.region }}",
      request_parameters: { old: "{{ config.get('old', 'gone') }}", made: "{{ config.made }}" },
    },
    rules: {
      config_migrations: [
        {
          type: "ConfigMigration",
          transformations: [
            { type: "ConfigRemapField", field_path: ["region"], map: { europe: "eu" } },
            { type: "ConfigRemoveFields", field_pointers: [["old"]] },
          ],
        },
      ],
      transformations: [
        { type: "ConfigAddFields", fields: [{ path: ["made", "at"], value: "{{ config.region }}-1" }] },
        { type: "ConfigAddFields", fields: [{ path: ["made", "as"], value: "5", value_type: "string" }] },
      ],
      validations: [
        {
          ...{ type: "DpathValidator", field_path: ["ids", "*"] },
          validation_strategy: { type: "ValidateAdheresToSchema", base_schema: { type: "integer" } },
        },
        {
          ...{ type: "DpathValidator", field_path: ["region"] },
          // One engine or the other does not know look-around: that part is left out.
          validation_strategy: {
            type: "ValidateAdheresToSchema",
            base_schema: { pattern: "^e", allOf: [{ pattern: "(?=x)y" }] },
          },
        },
      ],
    },
  });
  await read(source, { config: { region: "europe", old: "x", ids: [1, 2] } });
  expect(asked.map((url) => decodeURIComponent(url.replaceAll("+", " ")))).toEqual([
    "/eu?old=gone&made={'at': 'eu-1', 'as': '5'}",
  ]);
  await expect(read(source, { config: { region: "eu", ids: ["one"] } })).rejects.toThrow("must be integer");
  await expect(read(source, { config: { region: "us", ids: [] } })).rejects.toThrow("must match pattern");
});

test("a path is joined without empty segments; a configuration's list fits choices that stand beside it", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    json(response, { items: [] });
  });
  const source = JSON.parse(
    manifest(`${origin}/v1/`, { requester: { path: "groups//{{ config.kinds[0] }}//items?q=a//b" } }),
  );
  source.spec.connection_specification.properties = { kinds: { type: "array", enum: ["a", "b"] } };
  await read(JSON.stringify(source), { config: { kinds: ["a"] } });
  expect(asked).toEqual(["/v1/groups/a/items?q=a//b"]);
});

const one = (source: string) => read(source).then(({ records }) => records[0]);

test("what a template has nothing to say for is not asked for; nor is text that is empty", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(`${request.url} ${request.headers["x-none"]} ${request.body}`);
    json(response, { items: [] });
  });
  const none = "{{ ','.join(config.get('none', [])) }}";
  const requester = {
    ...{ http_method: "POST", request_headers: { "X-None": none }, request_parameters: { none, empty: "", q: "1" } },
    request_body_json: { a: none, b: ["x", none], c: { d: "{{ none }}" } },
  };
  await read(manifest(origin, { requester }));
  expect(asked).toEqual(['/items?q=1 undefined {"b":["x",null],"c":{}}']);
});

test("a configuration's id of twenty digits is asked for with all of them", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    json(response, { items: [] });
  });
  const source = JSON.parse(manifest(origin, { requester: { path: "{{ config.account.id }}/{{ config.page }}" } }));
  const account = { type: "object", properties: { id: { type: "integer" } } };
  source.spec.connection_specification.properties = { account, page: { type: "integer" } };
  await read(JSON.stringify(source), { config: { account: { id: "12345678901234567890" }, page: "7" } });
  expect(asked).toEqual(["/12345678901234567890/7"]);
});

test("one expression may stand in place of a mapping; what is in it is no template", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(`${request.url} ${request.headers["content-type"]} ${request.body}`);
    json(response, { items: [] });
  });
  const mapping = "{{ config.options }}";
  const requester = { http_method: "POST", request_parameters: mapping, request_body_data: mapping };
  const options = { a: ["1", "2"], b: "{{ 1 }}", c: null };
  await read(manifest(origin, { requester }), { config: { options } });
  const form = "a=1&a=2&b=%7B%7B+1+%7D%7D";
  expect(asked).toEqual([`/items?${form} application/x-www-form-urlencoded ${form}`]);
});

test("transformations name and flatten fields as the reference does", async () => {
  const record = {
    ...{ HTTPCode: 1, "Hello World": 1, "9lives": 1, a1b: 1, Über: 1, Inner: { KeyOne: 1 }, list: [{ KeyTwo: 1 }] },
    nested: { a: { b: 1, c: 2 } },
  };
  const origin = await vendor((_request, response) => json(response, { items: [record] }));
  const by = (transformation: Record<string, unknown>) => one(manifest(origin, { transformations: [transformation] }));
  expect(Object.keys((await by({ type: "KeysToSnakeCase" })) ?? {})).toEqual([
    "httpcode",
    "hello_world",
    "_9_lives",
    "a_1_b",
    "uber",
    "inner",
    "list",
    "nested",
  ]);
  expect(await by({ type: "FlattenFields" })).toMatchObject({ b: 1, "list.0.KeyTwo": 1, HTTPCode: 1 });
  expect(await by({ type: "FlattenFields", flatten_lists: false })).toMatchObject({ KeyOne: 1, b: 1, c: 2 });
  const flat = { type: "DpathFlattenFields", field_path: ["nested", "a"], delete_origin_value: true };
  expect(await by(flat)).toMatchObject({ b: 1, c: 2, nested: {} });
  expect(await by({ ...flat, field_path: ["list", "0"] })).toMatchObject({ KeyTwo: 1, list: [] });
  const taken = { ...flat, key_transformation: { type: "KeyTransformation", prefix: "H", suffix: "" } };
  expect(await by({ ...taken, field_path: ["nested"] })).toMatchObject({ Ha: { b: 1, c: 2 } });
});

test("intervals are whole months, weeks or days where the manifest clamps them", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(["since", "until"].map((name) => request.at.searchParams.get(name)?.slice(0, 10)).join(" "));
    json(response, { items: [] });
  });
  const intervals = async (
    target: string,
    step: string,
    more: Record<string, unknown> = {},
    from = "01-10T05:00:00Z",
    cursor_granularity: string | undefined = "P1D",
  ) => {
    asked.length = 0;
    const sync = {
      ...cursor,
      ...{
        start_datetime: `2026-${from}`,
        end_datetime: "2026-03-05T10:00:00Z",
        step,
        cursor_granularity,
      },
      end_time_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "until" },
      clamping: { type: "Clamping", target, ...more },
    };
    await read(manifest(origin, { sync }), { config: { target: "MONTH" } });
    return [...asked];
  };
  expect(await intervals("MONTH", "P1M")).toEqual(["2026-02-01 2026-02-28"]);
  const weeks = await intervals("WEEK", "P3W", { target_details: { weekday: "SUNDAY" } });
  expect(weeks).toEqual(["2026-01-11 2026-01-31", "2026-02-01 2026-02-21", "2026-02-22 2026-02-28"]);
  expect(await intervals("DAY", "P1D", {}, "03-03T05:00:00Z")).toEqual(["2026-03-04 2026-03-04"]);
  // Still the third in UTC.
  expect(await intervals("DAY", "P1D", {}, "03-04T02:00:00+05:30")).toEqual(["2026-03-04 2026-03-04"]);
  // Its first day stands for the whole month; without a granularity the end is where the last month ends.
  expect(await intervals("{{ config.target }}", "P2M", {}, "02-01T05:00:00Z")).toEqual(["2026-02-01 2026-02-28"]);
  expect(await intervals("MONTH", "", {}, "02-01T05:00:00Z", "")).toEqual(["2026-02-01 2026-03-01"]);
  // No step is shorter than what it is clamped to.
  expect(await intervals("MONTH", "PT12H")).toEqual(["2026-02-01 2026-02-28"]);
  expect((await intervals("DAY", "P20D")).slice(0, 2)).toEqual(["2026-01-11 2026-01-30", "2026-01-31 2026-02-19"]);
});

test("a cursor that filters here asks with its options too, and drops what is past a given end", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.at.searchParams.get("since") ?? "");
    json(response, { items: ["2025-01-01", "2026-01-05", "2026-12-01"].map((date, id) => ({ id, at: day(date) })) });
  });
  const { records } = await read(manifest(origin, { sync: { ...cursor, is_client_side_incremental: true } }));
  expect([asked, records.map(({ id }) => id)]).toEqual([[day("2026-01-01")], [1]]);
});

test("CSV in an encoding that Python names, or the answer; a short row has nothing in its last columns", async () => {
  const origin = await vendor((_request, response) => {
    response.setHeader("content-type", "text/csv; charset=iso-8859-1");
    response.end(Buffer.from("id\x01name\n1\x01caf\xe9\n2\n", "latin1"));
  });
  const decoder = { type: "CsvDecoder", delimiter: "\\u0001" };
  const record_selector = { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: [] } };
  const readIn = (encoding: object) =>
    read(manifest(origin, { retriever: { decoder: { ...decoder, ...encoding }, record_selector } }));
  for (const encoding of [{ encoding: "latin-1" }, {}])
    expect((await readIn(encoding)).records).toEqual([
      { id: "1", name: "café" },
      { id: "2", name: null },
    ]);
  // What it cannot hold is not made something else.
  await expect(readIn({ encoding: "utf-8" })).rejects.toThrow("not valid for encoding utf-8");
});

test("every name of a slice shows all of it: a path may be made of a partition's extra fields", async () => {
  const asked: string[] = [];
  const origin = await vendor((request, response) => {
    asked.push(request.url ?? "");
    json(response, { items: [{ id: 1, ref: "r1" }] });
  });
  const path =
    "/{{ stream_partition.parent }}/items?ref={{ stream_partition.extra_fields.ref }}&from={{ stream_partition.start_time[:10] }}" +
    "&all={{ stream_slice.partition.parent }}{{ stream_slice['cursor_slice'].start_time[:4] }}{{ stream_slice | length }}";
  await read(
    manifest(origin, {
      requester: { path },
      retriever: { partition_router: parentOf(origin, { extra_fields: [["ref"]] }) },
      sync: cursor,
    }),
  );
  expect(asked[1]).toMatch(/^\/1\/items\?ref=r1&from=2026-01-01&all=120264&since=/);
  asked.length = 0;
  const without = "/{{ stream_slice.parent }}/{{ stream_slice.extra_fields.get('ref', 'none') }}";
  await read(manifest(origin, { requester: { path: without }, retriever: { partition_router: parentOf(origin) } }));
  expect(asked[1]).toBe("/1/none");
});
