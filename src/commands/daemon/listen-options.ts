// What `daemon start` and `daemon restart` share: where to listen, and the text that shows a daemon.
import { resolve } from "node:path";
import type { Command } from "commander";
import { MagicError } from "#contract/errors.ts";
import type { RuntimeFile } from "#contract/protocol.ts";
import type { TextForm } from "#output/output.ts";
import { record } from "#output/table.ts";

export interface ListenOptions {
  readonly port?: string;
  readonly host?: string;
  readonly allowWeakSandbox?: boolean;
  readonly forgetSealed?: boolean;
  readonly tls?: boolean;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

export function addListenOptions(command: Command): Command {
  return command
    .option("--port <n>", "the port to listen on; 0 is any free one (default 4141, or the next free one)")
    .option("--host <address>", "the address to listen on (default 127.0.0.1)", (text) => {
      if (text.trim() === "") throw new MagicError("usage", "--host takes an address, such as 127.0.0.1.");
      return text;
    })
    .option("--tls", "serve TLS 1.3 only")
    .option("--tls-cert <file>", "the certificate chain, PEM (default: a local one made on the spot)")
    .option("--tls-key <file>", "its private key, PEM")
    .option("--allow-weak-sandbox", "run controllers where this machine cannot lock them down")
    .option("--forget-sealed", "give up the credentials that a master key sealed which is gone");
}

/** The flags that the daemon's own command line takes besides host and port; it runs in another folder than `cwd`. */
export function flagsOf(options: ListenOptions, cwd: string): string[] {
  return [
    ...(options.allowWeakSandbox ? ["--allow-weak-sandbox"] : []),
    ...(options.forgetSealed ? ["--forget-sealed"] : []),
    ...(options.tls ? ["--tls"] : []),
    ...(options.tlsCert === undefined ? [] : [`--tls-cert=${resolve(cwd, options.tlsCert)}`]),
    ...(options.tlsKey === undefined ? [] : [`--tls-key=${resolve(cwd, options.tlsKey)}`]),
  ];
}

export function showDaemon(runtime: RuntimeFile, headline: string): TextForm {
  return (paint) =>
    [
      `${paint.green("●")} ${headline}: ${paint.bold(runtime.url)}`,
      record(
        { root: runtime.root, pid: runtime.pid, version: runtime.version, "gateway token": runtime.gateway_token },
        paint,
      ),
    ].join("\n");
}
