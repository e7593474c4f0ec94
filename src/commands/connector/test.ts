// magic connector test: does this configuration work? Reads one record of what the manifest names for it.
import { allowedPrivate, readConnector } from "#client/connectors/store.ts";
import { runConnectorWorker } from "#client/connectors/worker.ts";
import { defineCommand } from "#commands/command.ts";
import { findRoot } from "#shared/paths.ts";
import { configOf } from "./config.ts";

export default defineCommand<{ config?: string }>({
  configure: (command) =>
    command
      .argument("<connector>", "its name, or a manifest file")
      .option("--config <json|@file|->", "the configuration"),
  async run({ args, options, output, globals, env, cwd, signal }) {
    const name = args[0] as string;
    const root = findRoot(globals.root, env, cwd).path;
    const manifest = await readConnector(root, name);
    const config = await configOf(options.config);
    await runConnectorWorker(
      { type: "check", manifest, config, allow_private: allowedPrivate(root, env) },
      { signal, onReply: (reply) => reply.type === "log" && output.note(reply.message) },
    );
    output.result(
      { name, status: "succeeded" },
      (paint) => `${paint.green("✔")} ${name} answers with this configuration`,
    );
  },
});
