import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readProject } from "#contract/project-check.ts";
import { openProject, type Project } from "#daemon/project.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { controllersFolder } from "#scaffold/project.ts";
import { validatePaths } from "#scaffold/validation.ts";
import { findRoot } from "#shared/paths.ts";

// Generous, for machines that do other things too.
vi.setConfig({ testTimeout: 60_000 });

let root: string;
let project: Project | undefined;
const lines: string[] = [];
const logger = createLogger({ sinks: [({ text }) => lines.push(text)] });
const env = { OPENAI_API_KEY: "sk-from-the-environment", SHORT: "abc" };

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "magic-project-"));
  lines.length = 0;
});
afterEach(async () => {
  await project?.close();
  project = undefined;
  await rm(root, { recursive: true, force: true });
});

const save = (text: string) => writeFile(join(root, "magic.yaml"), text);
const open = async (watch = false) => {
  project = await openProject({ root, env, logger, watch });
  return project;
};

test("what stands behind a name with a line end is looked at", () => {
  const text =
    '{gateway: {policies: {"a\\nb": 5}, models: {aliases: {"c\\nd": 7}}}, telemetry: {otlp_headers: {"e\\nf": []}}}';
  expect(readProject(text, "magic.yaml").problems.map(({ pointer }) => pointer)).toEqual([
    "/gateway/policies/a\nb",
    "/gateway/models/aliases/c\nd",
    "/telemetry/otlp_headers/e\nf",
  ]);
});

test("what no request can carry is refused where it stands in the file, and left for later where the environment has it", () => {
  const gateway = {
    providers: {
      openai: { api_key: "sk-\u20ac", base_url: "http://a:99999/v1" },
      anthropic: { api_key: `\${ANTHROPIC_API_KEY}`, base_url: "https://user:pass@proxy.example" },
      google: { api_key: `\${env:}` },
      bedrock: { region: "us east 1", session_token: "a\nb" },
      mine: {
        type: "openai",
        base_url: "http://a b/v1",
        headers: { "a b": "x", Connection: "close", c: "x\ny", d: "\u00e9" },
      },
      fine: {
        type: "openai",
        base_url: `\${env:URL}`,
        api_key: "key\n",
        headers: { Host: "virtual.example", a: `\${env:A}` },
      },
    },
  };
  const { problems } = readProject(JSON.stringify({ gateway }, null, 1), "magic.yaml");
  expect(problems.every(({ code }) => code === "bad_form")).toBe(true);
  expect(problems.map(({ pointer }) => pointer.slice("/gateway/providers/".length))).toEqual([
    "openai/api_key",
    "openai/base_url",
    "anthropic/api_key",
    "anthropic/base_url",
    "google/api_key",
    "bedrock/region",
    "bedrock/session_token",
    "mine/base_url",
    "mine/headers/a b",
    "mine/headers/Connection",
    "mine/headers/c",
  ]);
  expect(JSON.stringify(problems)).not.toContain("\u20ac");
});

test("of a choice the alternative that was meant says what is wrong with it, entry by entry", () => {
  const candidates = [{ model: "a/b", weight: -1 }, { model: "a/b", wieght: 1 }, "", 5, { weight: 1 }, "a/b"];
  const { problems } = readProject(JSON.stringify({ gateway: { policies: { p: { candidates } } } }), "magic.yaml");
  expect(problems.map(({ pointer, code }) => `${pointer.split("/").slice(5).join("/")} ${code}`)).toEqual([
    "0/weight out_of_range",
    "1/wieght unknown_key",
    "2 invalid",
    "3 invalid",
    "4/model missing_key",
  ]);
});

test("a name that every object inherits is nobody's secret, database or alias", async () => {
  await save(
    "secrets: { A: a }\ndatabases: { main: { url: 'sqlite:x.db' } }\ngateway: { models: { aliases: { b: openai/c } } }\n",
  );
  const { secrets, databases, gateway } = (await open()).current();
  for (const names of [secrets, databases, gateway?.models?.aliases])
    for (const name of ["constructor", "toString", "__proto__"]) expect(names?.[name]).toBeUndefined();
});

test("a version that is no number is told of once", () => {
  for (const version of ['"1"', "true", "[1]", "null"])
    expect(readProject(`version: ${version}\n`, "magic.yaml").problems.map(({ code }) => code)).toEqual(["wrong_type"]);
  expect(readProject("version: 2\n", "magic.yaml").problems).toMatchObject([
    { code: "not_allowed", line: 1, column: 10 },
  ]);
});

test("no file, and one that is empty or has comments alone, is a project with every default, to `validate` too", async () => {
  expect((await open()).current()).toEqual({});
  for (const [text, told] of [
    ["", ["empty"]],
    ["\ufeff \n", ["empty"]],
    ["# nothing yet\n\n", []],
    ["# nothing yet\r\n\r\n", []],
  ] as const) {
    await save(text);
    expect((await open()).current()).toEqual({});
    const { valid, warnings } = validatePaths([], root, root);
    expect([valid, warnings.map(({ code }) => code)]).toEqual([true, told]);
  }
});

test("a link that leads nowhere is this project's file, which cannot be read: no other project, and no default, takes its place", async () => {
  await save("version: 1\nenvironment: { seed: 1 }\n");
  const inner = join(root, "inner");
  await mkdir(inner);
  await symlink("nowhere.yaml", join(inner, "magic.yaml"));
  expect(findRoot(undefined, {}, inner)).toEqual({ path: inner, project: true });
  expect(() => validatePaths([], inner, inner)).toThrow("it is a link that leads nowhere");
  expect(() => controllersFolder(inner)).toThrow("it is a link that leads nowhere");
  await expect(openProject({ root: inner, env, logger, watch: false })).rejects.toMatchObject({
    code: "config_invalid",
    message: expect.stringContaining("it is a link that leads nowhere"),
  });
});

test("references to the environment are filled in; unset ones are empty and said once", async () => {
  await save(
    `version: 1\ngateway: { providers: { openai: { api_key: "\${env:OPENAI_API_KEY}" }, anthropic: { api_key: "x\${env:NOPE}" } } }\n`,
  );
  const { current, missing, secrets } = await open();
  expect(current().gateway?.providers).toMatchObject({
    openai: { api_key: "sk-from-the-environment" },
    anthropic: { api_key: "x" },
  });
  expect(missing()).toEqual([{ name: "NOPE", pointer: "/gateway/providers/anthropic/api_key" }]);
  expect(secrets()).toEqual(["sk-from-the-environment"]);
  expect(lines.filter((line) => line.includes("project.env_missing"))).toHaveLength(1);
});

test("it may be written as JSON", async () => {
  await save(JSON.stringify({ version: 1, daemon: { port: 5151 } }));
  expect((await open()).current().daemon?.port).toBe(5151);
});

test("a file that is not valid at the start is refused with every problem and its place", async () => {
  await save("version: 1\ndeamon: {}\ndaemon: { port: high }\n");
  await expect(open()).rejects.toMatchObject({
    code: "config_invalid",
    message: expect.stringMatching(/magic\.yaml:2:1 .*[\s\S]*magic\.yaml:3:/),
  });
});

test("a broken edit keeps the last good configuration, and the next good one comes into force", async () => {
  await save("version: 1\nenvironment: { seed: 1 }\n");
  const opened = await open(true);
  const seeds: (number | undefined)[] = [];
  opened.onChange((config) => void seeds.push(config.environment?.seed));
  opened.onChange(() => {
    throw new Error("a listener of another part");
  });
  await save("version: 1\nenvironment: { seed: ");
  await expect.poll(() => opened.problems().length, { timeout: 25_000 }).toBeGreaterThan(0);
  expect(opened.current().environment?.seed).toBe(1);
  expect(lines.some((line) => line.includes("project.invalid") && line.includes("magic.yaml:"))).toBe(true);
  // As editors save: written beside it, then renamed over it.
  await writeFile(join(root, "magic.yaml.tmp"), "version: 1\nenvironment: { seed: 2 }\n");
  await rename(join(root, "magic.yaml.tmp"), join(root, "magic.yaml"));
  await expect.poll(() => opened.current().environment?.seed, { timeout: 25_000 }).toBe(2);
  expect(opened.problems()).toEqual([]);
  await save("");
  await expect.poll(() => opened.problems(), { timeout: 25_000 }).toMatchObject([{ code: "empty" }]);
  for (const [accident, code] of [
    ["  \n\n", "empty"],
    [Buffer.from("version: 1\nsecrets: { K: caf\xe9 }\n", "latin1"), "unreadable"],
  ] as const) {
    await writeFile(join(root, "magic.yaml"), accident);
    await expect.poll(() => opened.problems(), { timeout: 25_000 }).toMatchObject([{ code }]);
    expect(opened.current().environment?.seed).toBe(2);
  }
  await rm(join(root, "magic.yaml"));
  await symlink("nowhere.yaml", join(root, "magic.yaml"));
  await expect
    .poll(() => opened.problems(), { timeout: 25_000 })
    .toMatchObject([{ code: "unreadable", message: expect.stringContaining("a link that leads nowhere") }]);
  expect(opened.current().environment?.seed).toBe(2);
  await rm(join(root, "magic.yaml"));
  await save("version: 1\nenvironment: { seed: 2 }\n");
  await expect.poll(() => opened.problems(), { timeout: 25_000 }).toEqual([]);
  await rm(join(root, "magic.yaml"));
  await expect.poll(() => opened.current(), { timeout: 25_000 }).toEqual({});
  expect(seeds).toEqual([2, undefined]);
});
