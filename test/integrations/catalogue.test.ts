// Our definitions: in the format, complete enough to simulate, and shown by the API.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { createCatalogue, definitionsFolder } from "#daemon/integrations/catalogue/catalogue.ts";
import { sharedPath } from "#test/shared.ts";

const files = readdirSync(definitionsFolder()).filter((file) => file.endsWith(".yaml"));

test("the catalogue covers the first dozen systems, each with objects, keys and a configuration schema", async () => {
  const connectors = await createCatalogue().list();
  const categories = new Set(connectors.map(({ category }) => category));
  for (const category of ["crm", "erp", "hr", "warehouse", "cloud", "bi", "chat", "database", "file"])
    expect(categories).toContain(category);
  expect(files.length).toBeGreaterThanOrEqual(12);
  expect(connectors.map(({ id }) => id)).toEqual(connectors.map(({ id }) => id).sort());
  const ajv = new Ajv({ strict: false });
  addFormats.default(ajv);
  for (const { id, name, objects, config_schema } of connectors.filter(({ id }) => files.includes(`${id}.yaml`))) {
    expect(name, id).not.toBe(id);
    expect(objects.length, id).toBeGreaterThan(0);
    expect(Object.keys(config_schema["properties"] as object).length, id).toBeGreaterThan(0);
    for (const object of objects) {
      expect(object.primary_key.length, `${id} ${object.name}`).toBeGreaterThan(0);
      expect(Object.keys(object.schema["properties"] as object), `${id} ${object.name}`).toEqual(
        expect.arrayContaining([...object.primary_key, ...object.cursor_candidates]),
      );
      const { $schema: _, ...schema } = object.schema;
      ajv.compile(schema);
    }
  }
});

const schemaFile = sharedPath("specs/airbyte-declarative-component-schema.yaml");

test.skipIf(schemaFile === null)("every definition fits the declarative component schema", () => {
  const schema = parse(readFileSync(schemaFile ?? "", "utf8")) as object;
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false, inlineRefs: false });
  const validate = ajv.compile(schema);
  for (const file of files) {
    const manifest = resolve(parse(readFileSync(join(definitionsFolder(), file), "utf8")));
    expect(validate(manifest), `${file}: ${ajv.errorsText(validate.errors?.slice(0, 5))}`).toBe(true);
  }
});

// The schema speaks of manifests whose references have been replaced.
function resolve(manifest: Record<string, unknown>): unknown {
  const walk = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(walk);
    if (typeof part !== "object" || part === null) return part;
    const { $ref, ...own } = part as Record<string, unknown>;
    const steps = typeof $ref === "string" ? $ref.slice(2).split("/") : [];
    const at = (whole: unknown, step: string) => (whole as Record<string, unknown>)[step];
    const found = steps.length > 0 ? walk(steps.reduce<unknown>(at, manifest)) : {};
    return { ...(found as object), ...Object.fromEntries(Object.entries(own).map(([k, v]) => [k, walk(v)])) };
  };
  return walk(manifest);
}
