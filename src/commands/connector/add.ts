// magic connector add: takes a manifest into the project after every stream of it could be built.
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { CONNECTOR_NAME, nameFromFile, readManifest, writeConnector } from "#client/connectors/store.ts";
import { runConnectorWorker } from "#client/connectors/worker.ts";
import { defineCommand } from "#commands/command.ts";
import { MAX_MANIFEST_BYTES } from "#contract/connector-files.ts";
import type { ConnectorSummary } from "#contract/connector-worker.ts";
import { MagicError } from "#contract/errors.ts";
import { isRedirect, readLocation } from "#contract/redirect.ts";
import { shellWord } from "#output/shell-word.ts";
import { collect } from "#shared/collect.ts";
import { findRoot, shownPath } from "#shared/paths.ts";

export default defineCommand<{ name?: string; force?: boolean }>({
  configure: (command) =>
    command
      .argument("<manifest>", "a low-code manifest: a YAML or JSON file, or an https:// URL")
      .option("--name <name>", "by default the file's name")
      .option("--force", "replace a connector of this name"),
  async run({ args, options, output, globals, env, cwd, signal }) {
    const source = args[0] as string;
    const text = await manifestText(source, cwd, signal);
    const name = options.name ?? nameFromFile(URL.parse(source)?.pathname ?? source);
    if (!CONNECTOR_NAME.test(name))
      throw new MagicError(
        "usage",
        `'${name}' is no name for a connector: use lower-case letters, digits, - and _ (--name).`,
      );
    let summary: ConnectorSummary | undefined;
    await runConnectorWorker(
      { type: "inspect", manifest: text },
      {
        signal,
        onReply: (reply) => {
          if (reply.type === "summary") summary = reply.summary;
        },
      },
    );
    const path = await writeConnector(findRoot(globals.root, env, cwd).path, name, text, options.force ?? false);
    const streams = summary?.streams ?? [];
    for (const { name: stream, refused } of streams) if (refused) output.warn(`${stream} cannot run: ${refused}`);
    for (const missing of summary?.missing_checks ?? [])
      output.warn(
        `the manifest's check reads the stream '${missing}', which there is not: magic connector test will fail`,
      );
    const runnable = streams.filter((stream) => !stream.refused).map((stream) => stream.name);
    output.result(
      { name, title: summary?.title ?? null, version: summary?.version ?? null, file: path, streams: runnable },
      (paint) => {
        const count = streamCount(runnable.length, summary?.dynamic ?? false);
        return `${paint.green("✔")} ${name}: ${count}, in ${shownPath(path, cwd)}\n  magic connector read ${name} ${shellWord(runnable[0] ?? "STREAM")} --config @config.json --limit 5`;
      },
    );
  },
});

function streamCount(known: number, dynamic: boolean): string {
  const counted = `${known} ${known === 1 ? "stream" : "streams"}`;
  if (!dynamic) return counted;
  return `${known > 0 ? `${counted} and those` : "streams"} that its configuration makes`;
}

async function manifestText(source: string, cwd: string, signal: AbortSignal): Promise<string> {
  if (!/^https?:\/\//i.test(source)) return readManifest(resolve(cwd, source));
  if (!/^https:/i.test(source)) throw new MagicError("usage", "A manifest is fetched over https only.");
  const response = await fetched(source, AbortSignal.any([signal, AbortSignal.timeout(30_000)]));
  if (!response.ok) throw new MagicError("upstream_error", `${source} answered ${response.status}`);
  const body = await collect(response.body ?? Readable.from([]), MAX_MANIFEST_BYTES).catch((error: Error) => {
    throw new MagicError("upstream_error", `${source} cannot be read: ${error.message}`);
  });
  return body.toString("utf8");
}

const MAX_REDIRECTS = 10;

// Every step of the way is TLS: who can change one without it can lead to a manifest of their own.
async function fetched(source: string, signal: AbortSignal): Promise<Response> {
  let url: string | URL = source;
  for (let steps = 0; steps <= MAX_REDIRECTS; steps++) {
    const response = await fetch(url, { redirect: "manual", signal }).catch((error: Error) => {
      throw new MagicError("upstream_error", `${source} cannot be fetched: ${error.message}`);
    });
    const location = response.headers.get("location");
    if (!isRedirect(response.status) || location === null) return response;
    const next = URL.parse(readLocation(location), url);
    if (next?.protocol !== "https:")
      throw new MagicError(
        "upstream_error",
        `${source} leads to ${next?.origin ?? location}: a manifest is fetched over https only.`,
      );
    url = next;
  }
  throw new MagicError(
    "upstream_error",
    `${source} cannot be fetched: it leads through more than ${MAX_REDIRECTS} redirects`,
  );
}
