// Broken contracts as people write them: each problem names its line, what is wrong, and how to put it right.
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { readContract } from "#contract/controller-check.ts";
import { env } from "#contract/env-reference.ts";
import { validatePaths } from "#scaffold/validation.ts";
import { temporaryFolder } from "#test/temporary.ts";

// Real processes on a machine that may be busy: nothing here depends on how long it takes.
vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const head = "name: a\nversion: 1.0.0\n";
const io = "input_schema: { type: object }\noutput_schema: { type: object }\n";
const ok = head + io;

type Case = readonly [what: string, text: string, line: number, code: string, pointer: string, fix: RegExp];

const cases: readonly Case[] = [
  ["an empty file", "", 1, "empty", "", /Write/],
  ["a list instead of a mapping", "- a\n- b\n", 1, "wrong_type", "", /./],
  ["a bare word", "hello\n", 1, "wrong_type", "", /./],
  ["no name", `version: 1.0.0\n${io}`, 1, "missing_key", "/name", /Add `name: triage`/],
  ["no schemas", head, 1, "missing_key", "/input_schema", /Add `input_schema/],
  ["a name with capitals and spaces", `name: My Bot\nversion: 1.0.0\n${io}`, 1, "bad_form", "/name", /lower-case/],
  ["a name that leaves its folder", `name: ../up\nversion: 1.0.0\n${io}`, 1, "bad_form", "/name", /lower-case/],
  [
    "a version of two numbers, unquoted",
    `name: a\nversion: 1.0\n${io}`,
    2,
    "wrong_type",
    "/version",
    /such as `1.0.0`/,
  ],
  ["a version of two numbers, quoted", `name: a\nversion: "1.0"\n${io}`, 2, "bad_form", "/version", /such as `1.0.0`/],
  ["a version with a v", `name: a\nversion: v1.0.0\n${io}`, 2, "bad_form", "/version", /semantic version/],
  ["a version with leading zeros", `name: a\nversion: 01.2.3\n${io}`, 2, "bad_form", "/version", /semantic version/],
  ["a version beyond counting", `name: a\nversion: ${"9".repeat(20)}.0.0\n${io}`, 2, "bad_form", "/version", /version/],
  ["a number as name", `name: 42\nversion: 1.0.0\n${io}`, 1, "wrong_type", "/name", /./],
  ["a misspelt key", `${ok}capabilites: []\n`, 5, "unknown_key", "/capabilites", /Did you mean `capabilities`/],
  ["a key nobody knows", `${ok}zzz: 1\n`, 5, "unknown_key", "/zzz", /known here: .*name/],
  [
    "a misspelt capability",
    `${ok}capabilities: [lmm:chat]\n`,
    5,
    "not_allowed",
    "/capabilities/0",
    /Did you mean `llm:chat`/,
  ],
  [
    "an unknown capability",
    `${ok}capabilities:\n  - filesystem:delete\n`,
    6,
    "not_allowed",
    "/capabilities/0",
    /Use one of: .*llm:chat/,
  ],
  ["capabilities as text", `${ok}capabilities: llm:chat\n`, 5, "wrong_type", "/capabilities", /llm:chat/],
  ["the same capability twice", `${ok}capabilities: [llm:chat, llm:chat]\n`, 5, "duplicate_item", "/capabilities", /./],
  ["http without hosts", `${ok}capabilities: [http:egress]\n`, 5, "scope_missing", "/scopes/http", /http: \[/],
  ["db without databases", `${ok}capabilities: [db:query]\n`, 5, "scope_missing", "/scopes/db", /db: \[/],
  [
    "secrets without names",
    `${ok}capabilities: [secrets:read]\n`,
    5,
    "scope_missing",
    "/scopes/secrets",
    /secrets: \[/,
  ],
  [
    "a scope without its capability",
    `${ok}scopes:\n  db: [{ name: main }]\n`,
    6,
    "capability_missing",
    "/scopes/db",
    /Add `db:query`/,
  ],
  ["no host at all", `${ok}capabilities: [http:egress]\nscopes: { http: [] }\n`, 6, "empty_list", "/scopes/http", /./],
  [
    "a URL as host",
    `${ok}capabilities: [http:egress]\nscopes:\n  http:\n    - host: https://a.example/x\n`,
    8,
    "bad_form",
    "/scopes/http/0/host",
    /without scheme/,
  ],
  [
    "an address that is none",
    `${ok}capabilities: [http:egress]\nscopes: { http: [{ host: 256.1.1.1 }] }\n`,
    6,
    "bad_form",
    "/scopes/http/0/host",
    /192\.0\.2\.1/,
  ],
  [
    "half an address",
    `${ok}capabilities: [http:egress]\nscopes: { http: [{ host: "[::1" }] }\n`,
    6,
    "bad_form",
    "/scopes/http/0/host",
    /2001:db8/,
  ],
  [
    "a method in lower case",
    `${ok}capabilities: [http:egress]\nscopes: { http: [{ host: a.example, methods: [get] }] }\n`,
    6,
    "not_allowed",
    "/scopes/http/0/methods/0",
    /Did you mean `GET`/,
  ],
  [
    "a port beyond the last",
    `${ok}capabilities: [http:egress]\nscopes: { http: [{ host: a.example, port: 70000 }] }\n`,
    6,
    "out_of_range",
    "/scopes/http/0/port",
    /up to 65535/,
  ],
  [
    "a database mode nobody has",
    `${ok}capabilities: [db:query]\nscopes: { db: [{ name: main, mode: rw }] }\n`,
    6,
    "not_allowed",
    "/scopes/db/0/mode",
    /read, write/,
  ],
  ["a limit as text", `${ok}limits: { timeout_ms: "5000" }\n`, 5, "wrong_type", "/limits/timeout_ms", /5000/],
  ["a negative limit", `${ok}limits: { timeout_ms: -1 }\n`, 5, "out_of_range", "/limits/timeout_ms", /from 1/],
  [
    "a misspelt limit",
    `${ok}limits: { memroy_mb: 64 }\n`,
    5,
    "unknown_key",
    "/limits/memroy_mb",
    /Did you mean `memory_mb`/,
  ],
  ["an isolation nobody has", `${ok}isolation: vm\n`, 5, "not_allowed", "/isolation", /process, invocation/],
  ["a tab as indentation", `${head}input_schema:\n\ttype: object\noutput_schema: true\n`, 4, "yaml_tab", "", /spaces/],
  ["a key twice", `${ok}name: b\n`, 5, "duplicate_key", "", /Keep one/],
  ["an unclosed bracket", `${head}input_schema: { type: object\noutput_schema: true\n`, 4, "yaml_syntax", "", /./],
  ["a colon in a plain value", `${ok}description: note: this\n`, 5, "yaml_syntax", "", /quotes/],
  [
    "an alias that contains itself",
    `${head}input_schema: &x { allOf: [*x] }\noutput_schema: true\n`,
    3,
    "yaml_alias",
    "",
    /Write the value out/,
  ],
  ["two documents", `${ok}---\nname: b\n`, 5, "yaml_documents", "", /one document/],
  ["bytes", `${ok}description: !!binary aGk=\n`, 5, "yaml_tag", "", /Remove/],
  ["a set", `${ok}capabilities: !!set { kv:read }\n`, 5, "yaml_tag", "", /Remove/],
  ["a language's own tag", `${ok}description: !!js/function x\n`, 5, "yaml_tag", "", /Remove/],
  ["not a number", `${ok}limits: { timeout_ms: .nan }\n`, 5, "not_json", "", /finite/],
  ["a control character", `${ok}description: "a\u0000b"\n`, 5, "control_character", "", /Remove/],
  ["a key that changes prototypes", `${ok}__proto__: { a: 1 }\n`, 5, "forbidden_key", "", /another name/],
  [
    "a misspelt type in a schema",
    `${head}input_schema: { type: objekt }\noutput_schema: true\n`,
    3,
    "schema_invalid",
    "/input_schema/type",
    /Did you mean `object`/,
  ],
  [
    "a misspelt keyword in a schema",
    `${head}input_schema: { type: object, propertis: {} }\noutput_schema: true\n`,
    3,
    "unknown_keyword",
    "/input_schema/propertis",
    /properties/,
  ],
  [
    "a schema whose check would answer with a promise",
    `${head}input_schema: { $async: true, type: string }\noutput_schema: true\n`,
    3,
    "unknown_keyword",
    "/input_schema/$async",
    /Remove/,
  ],
  [
    "a misspelt format in a schema",
    `${head}input_schema: { type: string, format: emial }\noutput_schema: true\n`,
    3,
    "unknown_format",
    "/input_schema/format",
    /Did you mean `email`/,
  ],
  [
    "required as text",
    `${head}input_schema:\n  type: object\n  required: text\noutput_schema: true\n`,
    5,
    "schema_invalid",
    "/input_schema/required",
    /./,
  ],
  [
    "a schema that is text",
    `${head}input_schema: object\noutput_schema: true\n`,
    3,
    "wrong_type",
    "/input_schema",
    /./,
  ],
  [
    "an older dialect",
    `${head}input_schema: { $schema: "http://json-schema.org/draft-07/schema#" }\noutput_schema: true\n`,
    3,
    "schema_dialect",
    "/input_schema/$schema",
    /2020-12/,
  ],
  [
    "a reference to the network",
    `${head}input_schema: { $ref: "https://a.example/s.json" }\noutput_schema: true\n`,
    3,
    "remote_ref",
    "/input_schema/$ref",
    /\$defs/,
  ],
  [
    "a reference to a file",
    `${head}input_schema: { $ref: "./other.json" }\noutput_schema: true\n`,
    3,
    "remote_ref",
    "/input_schema/$ref",
    /\$defs/,
  ],
  [
    "a reference to nothing",
    `${head}input_schema: { $ref: "#/$defs/tiket", $defs: { ticket: {} } }\noutput_schema: true\n`,
    3,
    "unknown_ref",
    "/input_schema/$ref",
    /ticket/,
  ],
  [
    "references in a circle",
    `${head}input_schema: { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { anyOf: [{ $ref: "#/$defs/a" }] } } }\noutput_schema: true\n`,
    3,
    "cyclic_ref",
    "",
    /property or an item/,
  ],
  [
    "a pattern that is none",
    `${head}input_schema: { type: string, pattern: "([" }\noutput_schema: true\n`,
    3,
    "pattern_invalid",
    "/input_schema/pattern",
    /regular expression/,
  ],
  [
    "a pattern without end",
    `${head}input_schema: { type: string, pattern: "^(a+)+$" }\noutput_schema: true\n`,
    3,
    "pattern_catastrophic",
    "/input_schema/pattern",
    /loop/,
  ],
  [
    "a pattern that its own trial cannot end",
    `${head}input_schema: { type: string, pattern: "^((((a?){9}){9}){9}){9}$" }\noutput_schema: true\n`,
    3,
    "pattern_catastrophic",
    "/input_schema/pattern",
    /loop/,
  ],
  ["broken JSON", `{"name": "a", "version": "1.0.0",\n "input_schema": {]}`, 2, "yaml_syntax", "", /./],
  ["a thousand brackets", `${head}input_schema: ${"[".repeat(20_000)}\n`, 1, "too_deep", "", /Nest/],
  ["far too much", `${ok}# ${"x".repeat(600_000)}\n`, 1, "too_large", "", /smaller/],
];

test.each(cases)("%s", (_what, text, line, code, pointer, fix) => {
  const { contract, problems } = readContract(text, "contract.yaml");
  expect(contract).toBeUndefined();
  const found = problems.find((problem) => problem.code === code && (pointer === "" || problem.pointer === pointer));
  expect(found, JSON.stringify(problems)).toBeDefined();
  expect(found).toMatchObject({ file: "contract.yaml", line });
  expect(found?.column).toBeGreaterThan(0);
  expect(found?.message).toMatch(/\.$/);
  expect(found?.fix).toMatch(fix);
});

test("a .json file is JSON, not only YAML that looks like it", () => {
  const text = '{\n  "name": "a", "version": "1.0.0", "input_schema": true, "output_schema": true,\n}\n';
  expect(readContract(text, "contract.json").problems).toMatchObject([{ code: "json_syntax", line: 3, column: 1 }]);
  expect(readContract(text.replace("true,\n", "true\n"), "contract.json").problems).toEqual([]);
});

test("every problem is reported, not only the first, in the order of the file", () => {
  const { problems } = readContract(
    'name: A B\nversion: 1.0\ninput_schema: { type: strin }\ncapabilities: [http:egress, nope]\nlimits: { timeout_ms: "x" }\nisolaton: 1\n',
    "c.yaml",
  );
  expect(problems.map(({ line, code }) => [line, code])).toEqual([
    [1, "missing_key"],
    [1, "bad_form"],
    [2, "wrong_type"],
    [3, "schema_invalid"],
    [4, "scope_missing"],
    [4, "not_allowed"],
    [5, "wrong_type"],
    [6, "unknown_key"],
  ]);
  expect(problems.find(({ code }) => code === "bad_form")?.value).toBe("A B");
});

test("a recursive schema with an end, a pattern with loops side by side and anchors are fine", () => {
  const { problems } = readContract(
    `${head}input_schema:\n  type: object\n  $dynamicAnchor: tree\n  properties:\n    parts: { items: { $dynamicRef: "#tree" } }\n    slug: { type: string, pattern: "^[a-z0-9]+(-[a-z0-9]+)*$" }\n    kids: { type: array, items: { $ref: "#" } }\n    one: { $ref: "#node" }\n  $defs: { node: { $anchor: node, type: string } }\noutput_schema: true\n`,
    "c.yaml",
  );
  expect(problems).toEqual([]);
});

test("a folder of broken contracts: every file is named, nothing stops the rest", () => {
  const folder = join(tmpdir(), `magic-malformed-${process.pid}`);
  try {
    for (const [index, [, text]] of cases.entries()) {
      mkdirSync(join(folder, `c${index}`), { recursive: true });
      writeFileSync(join(folder, `c${index}`, "contract.yaml"), text);
      writeFileSync(join(folder, `c${index}`, "handler.ts"), "");
    }
    const { valid, problems } = validatePaths([folder], undefined, folder);
    expect(valid).toBe(false);
    expect(new Set(problems.map(({ file }) => file)).size).toBe(cases.length);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("types are written to a file of the controller's folder, and never through a link out of it", () => {
  const root = temporaryFolder();
  const contract = { name: "a", version: "1.0.0", input_schema: true, output_schema: true };
  writeFileSync(join(root, "contract.yaml"), JSON.stringify(contract));
  writeFileSync(join(root, "handler.ts"), "");
  writeFileSync(join(root, "elsewhere"), "mine");
  symlinkSync("elsewhere", join(root, "contract.types.ts"));
  expect(validatePaths([root], undefined, root).valid).toBe(true);
  expect(readFileSync(join(root, "elsewhere"), "utf8")).toBe("mine");
  rmSync(join(root, "contract.types.ts"));
  writeFileSync(join(root, "contract.types.ts"), "");
  validatePaths([root], undefined, root);
  expect(readFileSync(join(root, "contract.types.ts"), "utf8")).toContain("export type Input");
});

test("a folder of controllers that is not there is a problem, but not where it is the one that every project has by default", () => {
  const root = temporaryFolder();
  const codes = (more: object) => {
    writeFileSync(join(root, "magic.yaml"), JSON.stringify({ version: 1, ...more }));
    return validatePaths([], root, root).problems.map(({ code, pointer }) => [code, pointer]);
  };
  expect(codes({})).toEqual([]);
  expect(codes({ controllers: "controllers" })).toEqual([]);
  expect(codes({ controllers: "units" })).toEqual([["folder_missing", "/controllers"]]);
});

test("a handler without a contract is named, in a project and in a folder of controllers", () => {
  const root = temporaryFolder();
  const folder = join(root, "controllers", "alone");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "handler.ts"), "");
  writeFileSync(join(root, "magic.yaml"), "version: 1");
  for (const paths of [[], ["controllers"], ["controllers/alone"]]) {
    const { problems } = validatePaths(paths, root, root);
    expect(problems).toMatchObject([{ file: "controllers/alone/contract.yaml", code: "contract_missing" }]);
  }
});

test.each([
  ["handler.tsx", "Rename it handler.ts, and write it without JSX."],
  ["Handler.JSX", "Rename it handler.js, and write it without JSX."],
  ["handler.cts", "Rename it handler.ts. Handlers"],
  ["index.mjs", "Rename it handler.js. Handlers"],
])("%s is no handler, and said to be there", (name, fix) => {
  const root = temporaryFolder();
  const contract = { name: "a", version: "1.0.0", input_schema: true, output_schema: true };
  writeFileSync(join(root, "contract.yaml"), JSON.stringify(contract));
  writeFileSync(join(root, "handler.test.ts"), "");
  const said = () => validatePaths([root], undefined, root).problems;
  expect(said()).toMatchObject([{ file: "handler.ts", code: "handler_missing" }]);
  writeFileSync(join(root, name), "");
  const message = `There is no handler: ${name} is not taken for one.`;
  expect(said()).toMatchObject([{ file: name, code: "handler_missing", message, fix: expect.stringContaining(fix) }]);
});

const unserved = (gateway: object): string[] => {
  const folder = join(tmpdir(), `magic-unserved-${process.pid}`);
  try {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "magic.yaml"), JSON.stringify({ version: 1, gateway }));
    const { problems, warnings } = validatePaths([], folder, folder);
    expect(problems).toEqual([]);
    return warnings.flatMap(({ code, pointer }) => (code === "unknown_name" ? pointer : [])).sort();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

test("models that no provider of magic.yaml serves are warned of, wherever they are named", () => {
  const gateway = {
    providers: { openai: {}, mine: { type: "openai", base_url: "http://127.0.0.1:1/v1", models: ["*/c", "mine/d/*"] } },
    models: { aliases: { good: "openai/a", bad: "opnai/a", listed: "meta/c", other: "d/e" } },
    policies: { p: { candidates: ["openai/a", { model: "gogle/b" }, "meta/c", "sandbox/echo", "good"] } },
    default: "nobody/d",
    prices: { "openai/a": {}, "opnai/a": {}, b: {}, "*/c": {}, "opn*": {}, "opnai/d*": {} },
  };
  expect(unserved(gateway)).toEqual([
    "/gateway/default",
    "/gateway/models/aliases/bad",
    "/gateway/policies/p/candidates/1",
    "/gateway/policies/p/candidates/2",
    "/gateway/prices/opnai~1a",
    "/gateway/prices/opnai~1d*",
  ]);
});

test.each([
  ["a slip in the sandbox's model", {}, "sandbox/ehco", true],
  ["a sandbox of another name", { play: { type: "sandbox" } }, "play/echo", false],
  ["a slip in its model", { play: { type: "sandbox" } }, "play/ehco", true],
  ["a bare name where there is only the sandbox", {}, "gpt-4o-mini", true],
  ["the sandbox's own", {}, "echo", false],
  ["a bare name that the price list may have", { openai: {} }, "gpt-4o-mini", false],
  ["the policy that there always is", {}, "policy:auto", false],
  ["a policy that there is not", { openai: {} }, "policy:p", true],
])("a default and an alias that lead nowhere are warned of: %s", (_, providers, model, warned) => {
  const config = { providers, default: model, models: { aliases: { a: model, b: "a" } } };
  expect(unserved(config)).toEqual(warned ? ["/gateway/default", "/gateway/models/aliases/a"] : []);
});

test("a file is read once, however many warnings it has", { timeout: 10_000 }, () => {
  const aliases = Object.fromEntries(Array.from({ length: 1_500 }, (_, at) => [`a${at}`, `nobody/${at}`]));
  expect(unserved({ models: { aliases } })).toHaveLength(1_500);
});

test.each([
  ["a server of many vendors' models", { router: { type: "openai", base_url: "https://openrouter.ai/api/v1" } }, true],
  ["a server whose address comes later", { router: { type: "openai", base_url: env("ROUTER") } }, true],
  ["Bedrock, which has ARNs", { mine: { type: "bedrock", region: "us-east-1" } }, true],
  ["a server of one's own", { own: { type: "openai", base_url: "http://localhost:1/v1" } }, false],
  ["another vendor", { openai: {}, google: {} }, false],
])("%s may serve a default and an alias with a slash, but no policy's candidate", (_, providers, served) => {
  const model = "anthropic/claude-sonnet-4.5";
  const policies = { p: { candidates: [model] } };
  expect(unserved({ providers, default: model, models: { aliases: { a: model } }, policies })).toEqual([
    ...(served ? [] : ["/gateway/default", "/gateway/models/aliases/a"]),
    "/gateway/policies/p/candidates/0",
  ]);
});

test("what a price or an allowed model spells out is served by the provider that it names", () => {
  const gateway = {
    providers: { openai: {} },
    default: "ft/one",
    models: { aliases: { a: "ft/two" }, allow: ["openai/ft/two"] },
  };
  expect(unserved({ ...gateway, prices: { "openai/ft/one": { input: 1, output: 1 } } })).toEqual([]);
  expect(unserved(gateway)).toEqual(["/gateway/default"]);
});

test("a private address that egress.allow_private does not list is warned of before it is refused", () => {
  const folder = join(tmpdir(), `magic-closed-${process.pid}`);
  const warned = (allow_private: string[]) => {
    const base_url = "http://127.0.0.1:11434/v1";
    const providers = {
      local: { type: "openai", base_url },
      far: { type: "openai", base_url: "https://api.example/v1" },
    };
    writeFileSync(
      join(folder, "magic.yaml"),
      JSON.stringify({ version: 1, gateway: { providers }, egress: { allow_private } }),
    );
    return validatePaths([], folder, folder).warnings.map(({ code, pointer }) => [code, pointer]);
  };
  try {
    mkdirSync(join(folder, "controllers", "c"), { recursive: true });
    const http = [{ host: "localhost", scheme: "http" }, { host: "10.0.0.1", port: 8080 }, { host: "example.com" }];
    const contract = { name: "c", version: "1.0.0", capabilities: ["http:egress"], scopes: { http } };
    const schemas = { input_schema: true, output_schema: true };
    writeFileSync(join(folder, "controllers", "c", "contract.json"), JSON.stringify({ ...contract, ...schemas }));
    writeFileSync(join(folder, "controllers", "c", "handler.ts"), "");
    expect(warned(["127.0.0.1:11434", "localhost:80", "10.0.0.1:8080"])).toEqual([]);
    expect(warned(["127.0.0.1:1"])).toEqual([
      ["egress_blocked", "/scopes/http/0/host"],
      ["egress_blocked", "/scopes/http/1/host"],
      ["egress_blocked", "/gateway/providers/local/base_url"],
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a reference that nothing fills in is warned of, and is a fault where it would be a provider's key", () => {
  const root = temporaryFolder();
  const checked = (key: string, written: string) => {
    const providers = { openai: { api_key: key } };
    writeFileSync(join(root, "magic.yaml"), JSON.stringify({ secrets: { S: written }, gateway: { providers } }));
    const { problems, warnings } = validatePaths([], root, root);
    return [...problems, ...warnings].map(({ pointer, fix }) => `${pointer} ${fix.match(/\$\{[^}]*\}/)?.[0]}`);
  };
  const filled = env("KEY");
  for (const [written, meant] of [
    [`\${TOKEN}`, "TOKEN"],
    [`\${secret:TOKEN}`, "TOKEN"],
    [`\${env:1}`, "NAME"],
    [`\${TOKEN:-none}`, "TOKEN"],
    ["a ${TOKEN", "TOKEN"],
  ] as const) {
    expect(checked(filled, written)).toEqual([`/secrets/S ${env(meant)}`]);
    const isWhole = written.startsWith("$");
    const pointer = "/gateway/providers/openai/api_key";
    expect(checked(written, filled)).toEqual([`${pointer} ${env(meant)}`]);
    expect(validatePaths([], root, root).valid).toBe(!isWhole);
  }
  expect(checked(filled, `Bearer ${env("TOKEN")}`)).toEqual([]);
});

test("a folder that nobody may look into is a problem beside the others", () => {
  const root = temporaryFolder();
  mkdirSync(join(root, "controllers"));
  writeFileSync(join(root, "magic.yaml"), "version: 1\n");
  writeFileSync(join(root, "controllers", "README.md"), "");
  symlinkSync("endless", join(root, "controllers", "endless"));
  const said = { code: "contract_unreadable", file: "controllers/endless/contract.yaml" };
  expect(validatePaths([], root, root)).toMatchObject({ valid: false, problems: [said] });
  expect(validatePaths(["controllers"], root, root)).toMatchObject({ valid: false, problems: [said] });
});

test("a format that nobody knows, and an integer that no double is, are warned of", () => {
  const root = temporaryFolder();
  writeFileSync(
    join(root, "contract.yaml"),
    `name: c
version: 1.0.0
input_schema:
  properties:
    format: { type: string, format: nope }
    known: { type: string, format: idn-email }
    ids: { enum: [9007199254740992, 9007199254740993, 1e300] }
output_schema: { maximum: 9223372036854775807, examples: [{ format: nope }] }
`,
  );
  writeFileSync(join(root, "handler.ts"), "");
  const { valid, warnings } = validatePaths([root], undefined, root);
  expect(valid).toBe(true);
  expect(warnings).toMatchObject([
    { line: 5, column: 37, pointer: "/input_schema/properties/format/format", code: "unknown_format" },
    { line: 7, column: 37, pointer: "/input_schema/properties/ids/enum/1", code: "out_of_range" },
    { line: 8, column: 27, pointer: "/output_schema/maximum", message: expect.stringContaining("9223372036854775808") },
  ]);
  const ids = { enum: Array.from({ length: 2_000 }, (_, at) => [at, 2 ** 53]) };
  const text = JSON.stringify({ name: "c", version: "1.0.0", input_schema: ids, output_schema: true });
  writeFileSync(join(root, "contract.yaml"), text.replaceAll(String(2 ** 53), "9007199254740993"));
  expect(validatePaths([root], undefined, root).warnings).toHaveLength(1_000);
});
