// Reads and checks a contract: the schema, the JSON Schemas inside, and that capabilities and scopes go together.
import { checkAgainst } from "./check.ts";
import type { Capability, ControllerContract } from "./controller.ts";
import { urlHost } from "./grants.ts";
import { fields, isObject, list } from "./json-object.ts";
import { checkEmbedded } from "./json-schema/embedded.ts";
import { type Problem, sortProblems } from "./problem.ts";
import { readSource, type Source } from "./source.ts";
import * as validators from "./validators.ts";

export interface ContractReading {
  /** Undefined where there is any problem. */
  readonly contract: ControllerContract | undefined;
  readonly problems: readonly Problem[];
}

/** The scope that a capability needs; `needed` false: without the scope the capability reaches everything of its kind. */
const scopeOf: Readonly<Partial<Record<Capability, { scope: string; needed: boolean; example: string }>>> = {
  "llm:chat": { scope: "llm", needed: false, example: "" },
  "http:egress": { scope: "http", needed: true, example: "[ { host: api.example.com, methods: [GET] } ]" },
  "db:query": { scope: "db", needed: true, example: "[ { name: main, mode: read } ]" },
  "secrets:read": { scope: "secrets", needed: true, example: "[CRM_TOKEN]" },
  "controller:invoke": { scope: "controllers", needed: false, example: "" },
  "sync:trigger": { scope: "syncs", needed: false, example: "" },
};

/** The text of a contract (YAML or JSON) as a contract, or every problem in it. */
export function readContract(content: string | Uint8Array, file: string): ContractReading {
  const { source, problems } = readSource(content, file);
  if (!source) return { contract: undefined, problems };
  const found = [...problems, ...checkAgainst(source, validators.contract)];
  const { value } = source;
  if (isObject(value)) {
    for (const key of ["input_schema", "output_schema"])
      if (key in value) found.push(...checkEmbedded(source, `/${key}`, value[key]));
    found.push(...pairing(source, value), ...noHosts(source, value, found));
  }
  const sorted = sortProblems(found);
  return { contract: sorted.length === 0 ? (source.value as ControllerContract) : undefined, problems: sorted };
}

/** What has a host's letters and is none: `256.1.1.1`, `[::1`. */
function noHosts(source: Source, value: Record<string, unknown>, found: readonly Problem[]): Problem[] {
  const { http } = (value["scopes"] ?? {}) as { http?: unknown };
  return list<{ host?: unknown } | null>(http).flatMap((grant, at) => {
    const host = grant?.host;
    const pointer = `/scopes/http/${at}/host`;
    if (typeof host !== "string" || urlHost(host) !== undefined) return [];
    if (found.some((problem) => problem.pointer === pointer)) return [];
    const message = `\`${host}\` is neither a host name nor an address.`;
    const fix = "Write a name such as `api.example.com`, or an address such as `192.0.2.1` or `[2001:db8::1]`.";
    return [{ file: source.file, ...source.locate(pointer), pointer, code: "bad_form", message, fix, value: host }];
  });
}

function pairing(source: Source, value: Record<string, unknown>): Problem[] {
  const problems: Problem[] = [];
  const declared = list(value["capabilities"]);
  const scopes = fields(value["scopes"]);
  for (const [at, capability] of declared.entries()) {
    const rule = scopeOf[capability as Capability];
    if (!rule?.needed || scopes[rule.scope] !== undefined) continue;
    problems.push({
      file: source.file,
      ...source.locate(`/capabilities/${at}`),
      pointer: `/scopes/${rule.scope}`,
      code: "scope_missing",
      message: `The capability \`${capability}\` needs scopes.${rule.scope}.`,
      fix: `Add under scopes: \`${rule.scope}: ${rule.example}\`.`,
      value: capability,
    });
  }
  for (const [capability, rule] of Object.entries(scopeOf)) {
    if (!(rule.scope in scopes) || declared.includes(capability)) continue;
    problems.push({
      file: source.file,
      ...source.locate("/scopes", rule.scope),
      pointer: `/scopes/${rule.scope}`,
      code: "capability_missing",
      message: `scopes.${rule.scope} is there, but the capability \`${capability}\` is not.`,
      fix: `Add \`${capability}\` to capabilities, or remove scopes.${rule.scope}.`,
    });
  }
  return problems;
}
