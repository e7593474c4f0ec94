// magic connector new: a connector for a JSON API, from its address and one live page. Asks on a terminal; options answer for scripts.
import { type Auth, credentialsOf, type Draft, manifestText, parseAuth } from "#client/connectors/draft.ts";
import {
  keyCandidates,
  type Pagination,
  paginations,
  recordPaths,
  recordsAt,
  schemaOf,
} from "#client/connectors/findings.ts";
import { type Config, firstPage, morePages } from "#client/connectors/probe.ts";
import { allowedPrivate, CONNECTOR_NAME, writeConnector } from "#client/connectors/store.ts";
import { type Context, defineCommand } from "#commands/command.ts";
import { MagicError } from "#contract/errors.ts";
import type { Output } from "#output/output.ts";
import { askChoice, askSecret, askText } from "#output/prompt.ts";
import { shellWord } from "#output/shell-word.ts";
import { findRoot, shownPath } from "#shared/paths.ts";
import { configOf } from "./config.ts";

interface Options {
  readonly baseUrl?: string;
  readonly auth?: string;
  readonly config?: string;
  readonly path?: string;
  readonly param?: readonly string[];
  readonly stream?: string;
  readonly records?: string;
  readonly primaryKey?: string;
  readonly pagination?: string;
  readonly cursorField?: string;
  readonly cursorParam?: string;
  readonly force?: boolean;
}

export default defineCommand<Options>({
  configure: (command) =>
    command
      .argument("[name]", "the connector's name")
      .option("--base-url <url>", "where the API is, e.g. https://api.example.com/v1/")
      .option("--auth <how>", "none, bearer, basic, header:NAME, query:NAME, oauth:TOKEN_URL")
      .option("--config <json|@file|->", "the credentials for the first read; they are not written down")
      .option("--path <path>", "the first stream's path, e.g. customers")
      .option("--param <name=value...>", "query parameters of every request")
      .option("--stream <name>", "by default the path's last part")
      .option("--records <path>", "where the records are in the answer, e.g. data.items; found by itself")
      .option("--primary-key <fields>", "e.g. id, or a,b; found by itself")
      .option(
        "--pagination <how>",
        "none, link, next_url:PATH, cursor:PATH:PARAM, header:NAME:PARAM, page:PARAM:SIZE[:START], offset:PARAM:SIZE",
      )
      .option("--cursor-field <field>", "read incrementally by this time of a record; needs --cursor-param")
      .option("--cursor-param <name>", "the query parameter that takes the earliest time")
      .option("--force", "replace a connector of this name")
      .addHelpText(
        "after",
        "\nExample:\n  magic connector new shop --base-url https://api.example.com/v1/ \\\n    --auth bearer --path orders --config @config.json",
      ),
  async run(context) {
    const { options, output, globals, env, cwd, signal } = context;
    const start = await asked(context);
    const config = await credentials(context, start.auth);
    const root = findRoot(globals.root, env, cwd).path;
    const asking = { config, allow_private: allowedPrivate(root, env), signal };
    const page = await watched(output, firstPage(start, asking));
    const recordsPath = options.records === undefined ? await findRecords(context, page.body) : split(options.records);
    const found = recordsAt(page.body, recordsPath);
    if (!found.some((record) => Object.keys(record).length > 0))
      throw new MagicError(
        "upstream_error",
        `${page.url} has no records at '${recordsPath.join(".")}': see --records.`,
      );
    const key = options.primaryKey?.split(",") ?? keyCandidates(found).slice(0, 1);
    const draft = { ...start, recordsPath, primaryKey: key, schema: schemaOf(found) };
    const ways =
      options.pagination === undefined
        ? paginations(page, found.length, key.length === 1 ? key[0] : undefined)
        : [parsePagination(options.pagination)];
    const more = await watched(output, morePages(draft, ways, page, asking));
    const records = more?.records ?? found;
    const pagination =
      more?.pagination ?? (options.pagination === undefined ? { type: "none" as const } : (ways[0] as Pagination));
    const text = manifestText({ ...draft, pagination, schema: schemaOf(records) });
    const file = await writeConnector(root, draft.name, text, options.force ?? false);
    if (key.length === 0)
      output.warn("No field tells the records apart: pass --primary-key, or each sync reads everything again.");
    if (recordsPath.length === 0 && !Array.isArray(page.body))
      output.note("The answer is one object, taken for one record: if it holds a list, name it by --records.");
    else if (!more && pagination.type === "none")
      output.note("One page came. If there are more, say how they go on: --pagination.");
    const document = {
      ...{ name: draft.name, file, streams: [draft.stream], records_path: recordsPath, primary_key: key, pagination },
      ...{ records: records.length, fields: Object.keys(draft.schema["properties"] as object).length },
    };
    output.result(document, (paint) =>
      [
        `${paint.green("✔")} ${draft.name}: ${records.length} records of ${draft.stream} read, in ${shownPath(file, cwd)}`,
        `  records ${recordsPath.join(".") || "(the answer itself)"}, key ${key.join(", ") || "none"}, pages ${pagination.type}`,
        `  magic connector read ${draft.name} ${shellWord(draft.stream)} --config @config.json --limit 5`,
      ].join("\n"),
    );
  },
});

// An address that does not answer is tried again for half a minute.
function watched<T>(output: Output, read: Promise<T>): Promise<T> {
  const progress = output.progress("Reading");
  return read.finally(() => progress.done());
}

/** What must be known before the first request. */
async function asked({ args, options, need }: Context<Options>): Promise<Draft> {
  const authentication = (): Promise<string> =>
    askChoice("How do requests prove who asks?", [
      { value: "bearer", name: "A token in the Authorization header" },
      { value: "header", name: "A key in another header" },
      { value: "query", name: "A key in the query" },
      { value: "basic", name: "User name and password" },
      { value: "oauth", name: "OAuth 2.0 client credentials" },
      { value: "none", name: "Not at all" },
    ]);
  const given = await need({
    name: {
      value: args[0] as string | undefined,
      flag: "<name>",
      ask: () => askText("The connector's name", undefined, nameProblem),
    },
    baseUrl: {
      value: options.baseUrl,
      flag: "--base-url <url>",
      ask: () => askText("Where is the API?", undefined, addressProblem),
    },
    auth: {
      value: options.auth,
      flag: "--auth <how>",
      async ask() {
        const type = await authentication();
        if (type === "header") return `header:${await askText("The header's name", "X-Api-Key")}`;
        if (type === "query") return `query:${await askText("The parameter's name", "api_key")}`;
        return type === "oauth"
          ? `oauth:${await askText("The token endpoint's URL", undefined, addressProblem)}`
          : type;
      },
    },
    path: { value: options.path, flag: "--path <path>", ask: () => askText("The path of a list, e.g. customers") },
  });
  const badName = nameProblem(given.name);
  if (badName !== undefined) throw new MagicError("usage", `'${given.name}' is no name for a connector: ${badName}`);
  const badAddress = addressProblem(given.baseUrl);
  if (badAddress !== undefined) throw new MagicError("usage", `--base-url '${given.baseUrl}': ${badAddress}`);
  if ((options.cursorField === undefined) !== (options.cursorParam === undefined))
    throw new MagicError("usage", "--cursor-field and --cursor-param belong together.");
  const path = given.path.replace(/^\/+/, "");
  const cursor = { field: options.cursorField ?? "", parameter: options.cursorParam ?? "" };
  return {
    ...{ name: given.name, baseUrl: given.baseUrl, auth: parseAuth(given.auth), path },
    stream: options.stream ?? streamName(path),
    parameters: Object.fromEntries((options.param ?? []).map(parameter)),
    ...{ recordsPath: [], primaryKey: [], pagination: { type: "none" }, schema: { type: "object", properties: {} } },
    cursor: options.cursorField === undefined ? null : cursor,
  };
}

const nameProblem = (name: string): string | undefined =>
  CONNECTOR_NAME.test(name) ? undefined : "use lower-case letters, digits, - and _.";

const addressProblem = (address: string): string | undefined =>
  /^https?:$/.test(URL.parse(address)?.protocol ?? "")
    ? undefined
    : "it takes an http(s) URL, such as https://api.example.com/v1/.";

async function credentials({ options, output }: Context<Options>, auth: Auth): Promise<Config> {
  const config = await configOf(options.config);
  const missing = credentialsOf(auth).filter(({ name }) => config[name] === undefined);
  if (missing.length > 0 && !output.interactive) {
    const example = JSON.stringify(Object.fromEntries(missing.map(({ name }) => [name, "..."])));
    throw new MagicError(
      "usage",
      `--config lacks ${missing.map(({ name }) => name).join(", ")}: --config '${example}'.`,
    );
  }
  for (const { name, title } of missing)
    config[name] = /user|client_id/.test(name) ? await askText(title) : await askSecret(title);
  return config;
}

async function findRecords({ output }: Context<Options>, body: unknown): Promise<string[]> {
  const paths = recordPaths(body);
  const [first] = paths;
  if (first === undefined)
    throw new MagicError("upstream_error", "The answer is no JSON object and no list of objects.");
  if (paths.length === 1 || !output.interactive) return first;
  const name = (path: readonly string[]): string => path.join(".") || "(the answer itself)";
  const choices = paths.map((path, at) => ({
    ...{ value: String(at), name: `${name(path)}: ${recordsAt(body, path).length} records` },
  }));
  return paths[Number(await askChoice("Which are the records?", choices))] ?? first;
}

const split = (path: string): string[] => path.split(".").filter(Boolean);

function streamName(path: string): string {
  const parts = path.split(/[/?]/).filter((part) => /^[A-Za-z]/.test(part));
  return (parts.at(-1) ?? "records").replace(/\.\w+$/, "").replace(/[^A-Za-z0-9_]+/g, "_");
}

function parameter(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new MagicError("usage", `--param takes NAME=VALUE, not '${text}'.`);
  return [name, value];
}

function parsePagination(text: string): Pagination {
  const [type = "", first = "", second = "", third = "1"] = text.split(":");
  if (type === "none" || type === "link") return { type };
  if (type === "next_url" && first) return { type, path: split(first) };
  if (type === "cursor" && first && second) return { type, path: split(first), parameter: second };
  if (type === "header" && first && second) return { type, name: first.toLowerCase(), parameter: second };
  if (type === "offset" && first && Number(second) > 0) return { type, parameter: first, size: Number(second) };
  if (type === "page" && first && Number(second) > 0 && /^\d+$/.test(third))
    return { type, parameter: first, size: Number(second), start: Number(third) };
  throw new MagicError(
    "usage",
    `--pagination takes none, link, next_url:PATH, cursor:PATH:PARAM, header:NAME:PARAM, page:PARAM:SIZE[:START] or offset:PARAM:SIZE, not '${text}'.`,
  );
}
