// Brings the parts of docs/ up to date that are made from the code: JSON Schemas, the references in cli.md and contract.md, errors.md, the connectors' pages.
//   npm run docs
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Command } from "commander";
import { type CommandEntry, isNoun } from "#commands/command.ts";
import { described } from "#commands/help.ts";
import { groups } from "#commands/registry.ts";
import { ControllerContract } from "#contract/controller.ts";
import { errors } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { ProjectConfig } from "#contract/project.ts";
import { connectorPages } from "./connector-pages.ts";
import { keyTable } from "./keys.ts";

const folder = import.meta.dirname;

export const schemas = { "controller.json": ControllerContract, "project.json": ProjectConfig } as const;

/** The text of a published schema. */
export function schemaText(name: keyof typeof schemas): string {
  return `${JSON.stringify(schemas[name], null, 2)}\n`;
}

/** The reference of every command, from the registry. */
export async function reference(): Promise<string> {
  const parts: string[] = [];
  for (const { heading, commands } of groups) {
    parts.push(`### ${heading.replace(/:$/, "")}`);
    for (const [name, entry] of Object.entries(commands)) {
      const leaves: [string, CommandEntry][] = isNoun(entry)
        ? Object.entries((await entry.verbs()).verbs).map(([verb, leaf]) => [`${name} ${verb}`, leaf])
        : [[name, entry]];
      for (const [path, leaf] of leaves) parts.push(await section(path, leaf));
    }
  }
  return parts.join("\n\n");
}

/** Than the argument's name does. */
const SAYS_NO_MORE = /^the [a-z]+('s id)?$/;

async function section(path: string, entry: CommandEntry): Promise<string> {
  const command = new Command(path);
  (await entry.load()).default.configure?.(command);
  const args = command.registeredArguments.map((one) => {
    const name = one.variadic ? `${one.name()}...` : one.name();
    const text = one.argChoices ? `${one.description}: ${one.argChoices.join(", ")}` : one.description;
    return { form: one.required ? `<${name}>` : `[${name}]`, text };
  });
  const usage = ["magic", path, ...args.map(({ form }) => form)].join(" ");
  const options = command.options
    .filter(({ hidden }) => !hidden)
    .map((option) => ({ form: option.flags, text: described(option) }));
  const told = args.filter(({ text }) => text && !SAYS_NO_MORE.test(text));
  const lines = [...told, ...options].map(({ form, text }) => `- \`${form}\`: ${text}`);
  return [`**\`${usage}\`** ${entry.summary}.`, ...(lines.length > 0 ? ["", ...lines] : [])].join("\n");
}

/** The page of every error code, from the catalogue. */
export function errorPage(): string {
  const rows = Object.entries(errors).map(([code, { status, exit, actor, retryable, title, next }]) =>
    [`\`${code}\``, status === 0 ? "-" : status, exitCodes[exit], actor, retryable ? "yes" : "no", title, next]
      .map((cell) => String(cell).replaceAll("|", "\\|"))
      .join(" | "),
  );
  return [
    "# Errors",
    "",
    "Every code that an API's problem document (RFC 9457) or a failing command names, made from the catalogue by `npm run docs`. **Status** is that of",
    "HTTP (- where only a command says it), **exit** the command line's [exit code](cli.md#what-every-command-does-alike), **who** must act for it to go",
    "away, **again** whether the same request may pass later. The document's `detail` says what it was this time; an `errors` list names each place.",
    "",
    "| Code | Status | Exit | Who | Again | What | Next |",
    "| ---- | ------ | ---- | --- | ----- | ---- | ---- |",
    ...rows.map((row) => `| ${row} |`),
    "",
    ...fieldCodes,
    "",
    ...otherForms,
    "",
  ].join("\n");
}

/** What `errors` holds. */
const fieldCodes = [
  "## In `errors`",
  "",
  'Each is `{"pointer", "code", "detail"}`. The code is the keyword of JSON Schema that the place does not fit: `required`, `additionalProperties`,',
  "`type`, `enum`, `format`, `minimum`, `maxLength` and so on, of the route's schema or of the controller's or connector's own. Where no schema can say",
  "it, it is a word:",
  "",
  "- `unknown`, `not_found`: what it names is not there",
  "- `duplicate`, `conflict`: it is there twice, or together with what excludes it",
  "- `past`, `not_kept`: a time that is over, one that is too long ago",
  "- `schedule`, `timezone`, `cursor`: it is none",
  "- `reference`: one to a secret or to the environment that this caller may not give",
  "- `invalid`, `invalid_request`: it does not fit otherwise, as the detail says",
  "- `depth`, `too_slow`, `too_many`: it nests too deep, takes too long to check, or would make too much",
  "- `breaking_change`: what `incompatible_version` is about",
  "- of contract.yaml and magic.yaml, a [problem of `magic validate`](contract.md#problems)",
];

/** What the gateway's and the token endpoint's clients know errors by. */
const otherForms = [
  "## In OpenAI's form",
  "",
  'The gateway answers `{"error": {"message", "type", "param", "code"}}`. The codes are those above, with three differences: `invalid_key` is',
  "`invalid_api_key`, `validation_failed` has status 400, and `overloaded` also says that a provider has no capacity. A request that a provider",
  "refuses keeps the code that the provider gives, or null. Besides there are:",
  "",
  "| Code | Status | Who | Again | What | Next |",
  "| ---- | ------ | --- | ----- | ---- | ---- |",
  "| `rate_limit_exceeded` | 429 | caller | yes | A limit of `gateway.limits`, or the provider's own | Wait for Retry-After seconds. |",
  "| `context_length_exceeded` | 400 | caller | no | The prompt does not fit into the model's context | Send less, or choose another model. |",
  "| `unsupported_value` | 400 | caller | no | The model does not do what the parameter asks | Change the parameter that `param` names. |",
  "| `invalid_image_url` | 400 | caller | no | An image cannot be fetched | Correct its address, or send the image itself. |",
  "| `upstream_authentication` | 401 | operator | no | The provider refused its key | Correct the key in magic.yaml, or the variable that it names. |",
  "| `upstream_permission` | 403 | operator | no | The provider does not let its key do this | Allow it there, or choose another model. |",
  "| `upstream_truncated` | 502 | upstream | yes | The provider's answer ended before its end mark | Send it again. |",
  "",
  "## At the token endpoint",
  "",
  '`POST /v1/auth/token` answers RFC 6749\'s `{"error", "error_description"}`: `invalid_client` (`invalid_key` above), `invalid_grant` (`expired`),',
  "`invalid_scope` (`insufficient_scope`), `unsupported_grant_type`, `temporarily_unavailable` (`rate_limited`, or 503), `server_error`, `invalid_request`.",
];

/** Every key of both files, from their schemas. */
export function keys(): string {
  return [
    "### contract.yaml",
    "",
    keyTable(ControllerContract),
    "",
    "### magic.yaml",
    "",
    "`NAME` is yours to choose, `[]` an entry of a list.",
    "",
    keyTable(ProjectConfig),
  ].join("\n");
}

export const BEGIN = "<!-- reference: made by npm run docs -->";
export const END = "<!-- end of reference -->";

function replacePart(name: string, part: string): void {
  const page = join(folder, name);
  const text = readFileSync(page, "utf8");
  const [before] = text.split(BEGIN);
  const after = text.split(END)[1] ?? "\n";
  writeFileSync(page, `${before}${BEGIN}\n\n${part}\n\n${END}${after}`);
}

if (import.meta.main) {
  mkdirSync(join(folder, "schema"), { recursive: true });
  for (const name of Object.keys(schemas) as (keyof typeof schemas)[])
    writeFileSync(join(folder, "schema", name), schemaText(name));
  writeFileSync(join(folder, "errors.md"), errorPage());
  replacePart("cli.md", await reference());
  replacePart("contract.md", keys());
  mkdirSync(join(folder, "connectors"), { recursive: true });
  for (const [name, text] of await connectorPages()) writeFileSync(join(folder, "connectors", name), text);
}
