import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { projectConnectors } from "#daemon/integrations/live/manifests.ts";
import { temporaryFolder } from "#test/temporary.ts";

test("a project's manifests are connectors as they are on the disk now; broken ones are left out", async () => {
  const root = temporaryFolder();
  const ask = projectConnectors(root);
  const ids = async () => (await ask()).map(({ id }) => id);
  expect(await ids()).toEqual([]);
  const folder = join(root, "connectors");
  mkdirSync(folder);
  const manifest = (title: string) =>
    JSON.stringify({
      ...{ version: "6.0.0", type: "DeclarativeSource", check: { type: "CheckStream", stream_names: [] }, streams: [] },
      spec: { type: "Spec", connection_specification: { type: "object", title, properties: { key: {} } } },
    });
  writeFileSync(join(folder, "one.yaml"), manifest("One"));
  writeFileSync(join(folder, "two.json"), manifest("Two"));
  writeFileSync(join(folder, "bad.yaml"), "{{");
  writeFileSync(join(folder, "..odd.yaml"), manifest("Odd"));
  expect(await ids()).toEqual(["one", "two"]);
  const [first] = await ask();
  expect((await ask())[0]).toBe(first);
  writeFileSync(join(folder, "one.yaml"), manifest("Another"));
  expect((await ask())[0]).not.toBe(first);
  rmSync(join(folder, "one.yaml"));
  // As the connector is read: of a name that stands twice the last one counts, and `<<` takes over what it names.
  const streams = "streams: [&a {name: a, primary_key: id}, {<<: *a, name: b}]";
  writeFileSync(join(folder, "bad.yaml"), `version: 5\nversion: 6\ncheck: {}\n${streams}`);
  const objects = (await ask()).find(({ id }) => id === "bad")?.objects;
  expect(objects?.map(({ name, primary_key }) => [name, primary_key])).toEqual([
    ["a", ["id"]],
    ["b", ["id"]],
  ]);
  expect(await ids()).toEqual(["bad", "two"]);
});

test("a project's manifest is shown as it is read: names of parameters, and no more than it may unfold to", async () => {
  const root = temporaryFolder();
  const folder = join(root, "connectors");
  mkdirSync(folder);
  const put = (name: string, stream: object, definitions: object): void =>
    writeFileSync(join(folder, name), JSON.stringify({ version: "6.0.0", check: {}, definitions, streams: [stream] }));
  const stream = { type: "DeclarativeStream", $parameters: { name: "items", primary_key: [["a", "b"], "c"] } };
  const base = { incremental_sync: { type: "DatetimeBasedCursor", cursor_field: "at" } };
  put("named.json", { ...stream, $ref: "#/definitions/base" }, { base });
  const levels = Array.from({ length: 14 }, (_, at) => {
    const next = { $ref: `#/definitions/level${at + 1}` };
    return [`level${at}`, { a: next, b: next, c: next, d: next }];
  });
  const unfolding = { ...stream, retriever: { $ref: "#/definitions/level0" } };
  put("unfolding.json", unfolding, { ...Object.fromEntries(levels), level14: {} });
  const [connector, ...others] = await projectConnectors(root)();
  expect(others).toEqual([]);
  expect(connector?.objects).toEqual([
    { name: "items", schema: { type: "object" }, primary_key: ["a.b", "c"], cursor_candidates: ["at"] },
  ]);
});

test("a stream that cannot run keeps nobody from the others of its manifest", async () => {
  const root = temporaryFolder();
  mkdirSync(join(root, "connectors"));
  const incremental_sync = { type: "DatetimeBasedCursor", cursor_field: "at" };
  const good = { type: "DeclarativeStream", name: "good", primary_key: "id", incremental_sync };
  const bad = { type: "DeclarativeStream", retriever: "a", schema_loader: "b", incremental_sync: "c" };
  const changing = {
    type: "StateDelegatingStream",
    name: "changing",
    incremental_stream: "d",
    full_refresh_stream: "e",
  };
  const streams = [{ ...bad, name: "bad" }, changing, good];
  writeFileSync(join(root, "connectors", "one.json"), JSON.stringify({ version: "6.0.0", check: {}, streams }));
  const [connector] = await projectConnectors(root)();
  expect(connector?.capabilities.modes).toEqual(["full_refresh", "incremental"]);
  expect(connector?.objects).toMatchObject([{ name: "bad" }, { name: "changing" }, { cursor_candidates: ["at"] }]);
});
