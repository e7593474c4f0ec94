// magic connector read: the records of one stream, as they come; then the state from which the next read goes on.
import { allowedPrivate, readConnector } from "#client/connectors/store.ts";
import { runConnectorWorker } from "#client/connectors/worker.ts";
import { defineCommand } from "#commands/command.ts";
import { readJsonInput } from "#commands/json-input.ts";
import { wholeOf } from "#commands/option-values.ts";
import { unpackNumbers } from "#shared/exact-number.ts";
import { wholeNumbers } from "#shared/json-text.ts";
import { findRoot } from "#shared/paths.ts";
import { configOf } from "./config.ts";
import { stateOf } from "./state.ts";

export default defineCommand<{ config?: string; state?: string; limit?: string; sandbox?: boolean }>({
  handlesInterrupt: true,
  configure: (command) =>
    command
      .argument("<connector>", "its name, or a manifest file")
      .argument("<stream>")
      .option("--config <json|@file|->", "the configuration")
      .option("--state <json|@file>", "a state that an earlier read gave")
      .option("--limit <n>", "stop after so many records")
      .option("--sandbox", "simulated records, made from the stream's schema: no configuration, no network"),
  async run({ args, options, output, globals, env, cwd, signal }) {
    const [name, stream] = args as [string, string];
    const limit = wholeOf(options.limit, "--limit", 1);
    const root = findRoot(globals.root, env, cwd).path;
    const manifest = await readConnector(root, name);
    const config = await configOf(options.config);
    const given = options.state === undefined ? null : await readJsonInput(options.state, "--state", wholeNumbers);
    const state = stateOf(given, stream);
    const job = {
      type: "read" as const,
      manifest,
      config,
      allow_private: allowedPrivate(root, env),
      stream,
      ...(state === undefined ? {} : { state }),
      ...(limit === undefined ? {} : { limit }),
      ...(options.sandbox ? { sandbox: true } : {}),
    };
    let count = 0;
    await runConnectorWorker(job, {
      signal,
      onReply: (reply) => {
        if (reply.type === "records")
          for (const record of reply.exact ? unpackNumbers(reply.records) : reply.records)
            output.event({ type: "record", stream, record }, () => JSON.stringify(record));
        if (reply.type === "records") count += reply.records.length;
        if (reply.type === "state" && output.format !== "text") output.event({ type: "state", state: reply.state });
        if (reply.type === "log") {
          if (output.format === "ndjson") output.event({ type: "log", level: reply.level, message: reply.message });
          else output.note(reply.message);
        }
      },
    });
    if (output.format !== "text") output.event({ type: "end", records: count });
    output.note(`${count} records`);
  },
});
