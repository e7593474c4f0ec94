import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { definitionsFolder } from "#daemon/integrations/catalogue/catalogue.ts";
import { loadManifest } from "#daemon/integrations/connectors/declarative/manifest/load.ts";
import { dpathOne } from "#daemon/integrations/connectors/declarative/read/dpath.ts";
import { sandboxRead } from "#daemon/integrations/connectors/declarative/sandbox.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { definitions } from "./catalogue/grades.ts";

type Manifest = ReturnType<typeof loadManifest>;

function page(manifest: Manifest, stream: string, state?: unknown, seed?: number): Record<string, unknown>[] {
  const first = sandboxRead(manifest, stream, state, seed).next().value;
  return first && first.type === "records" ? first.records : [];
}

test("every stream of the catalogue has records in the sandbox: valid by its schema, keys apart, the same each time, read on from a state", () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false, validateSchema: false });
  let streams = 0;
  for (const id of definitions()) {
    const manifest = loadManifest(readFileSync(join(definitionsFolder(), `${id}.yaml`), "utf8"));
    for (const stream of manifest.resolved["streams"] as Record<string, unknown>[]) {
      const name = String(stream["name"]);
      const place = `${id}/${name}`;
      const first = stream === (manifest.resolved["streams"] as unknown[])[0];
      const records = page(manifest, name);
      expect(records.length, place).toBe(25);
      if (first) expect(page(manifest, name), place).toEqual(records);
      const { $schema: _dialect, ...schema } = (stream["schema_loader"] as { schema: Record<string, unknown> }).schema;
      const valid = ajv.compile(schema);
      for (const record of records) expect(valid(record), `${place}: ${JSON.stringify(valid.errors)}`).toBe(true);
      const key = [stream["primary_key"] ?? []].flat(2).map(String);
      const keys = records.map((record) => JSON.stringify(key.map((path) => dpathOne(record, [path]))));
      if (key.length > 0) expect(new Set(keys).size, place).toBe(records.length);
      const sync = stream["incremental_sync"] as { cursor_field: string } | undefined;
      if (first && sync) {
        const cursor = String(
          dpathOne(
            records[9],
            Object.hasOwn(records[9] ?? {}, sync.cursor_field) ? [sync.cursor_field] : sync.cursor_field.split("."),
          ),
        );
        expect(page(manifest, name, { cursor })[0], place).toEqual(records[10]);
      }
      streams++;
    }
  }
  expect(streams).toBeGreaterThan(120);
});

test("another seed gives other records; after the last state there are none", () => {
  const manifest = loadManifest(readFileSync(join(definitionsFolder(), "stripe.yaml"), "utf8"));
  expect(page(manifest, "customers", undefined, 2)).not.toEqual(page(manifest, "customers"));
  const events = [...sandboxRead(manifest, "customers", undefined)];
  const last = events.at(-1);
  expect(last?.type).toBe("state");
  expect(page(manifest, "customers", last?.type === "state" ? last.state : null)).toEqual([]);
});

test("the command reads a system of the catalogue without a configuration", async () => {
  const args = ["connector", "read", "stripe", "customers", "--sandbox", "--limit", "3", "--output", "ndjson"];
  const env = { ...process.env, MAGIC_HOME: temporaryFolder(), MAGIC_ROOT: temporaryFolder() };
  const { stdout } = await promisify(execFile)(process.execPath, ["bin/magic.js", ...args], { env });
  const lines = stdout.trim().split("\n");
  expect(lines.map((line) => JSON.parse(line).type)).toEqual(["record", "record", "record", "end"]);
});
