// The daemon's own command line. `src/client/daemon` writes it; nobody else is meant to.
import { parseArgs } from "node:util";
import { MagicError } from "#contract/errors.ts";

export interface DaemonOptions {
  readonly root: string;
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** Milliseconds without use after which it ends, as one does that a command started by itself; undefined: a user stops it. */
  readonly idleAfterMs: number | undefined;
  readonly foreground: boolean;
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
}

const IDLE_AFTER = 30 * 60_000;

/** Throws usage. */
export function parseOptions(argv: readonly string[], env: NodeJS.ProcessEnv): DaemonOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      root: { type: "string" },
      host: { type: "string" },
      port: { type: "string" },
      "started-by": { type: "string" },
      foreground: { type: "boolean" },
      "allow-weak-sandbox": { type: "boolean" },
      "forget-sealed": { type: "boolean" },
      tls: { type: "boolean" },
      "tls-cert": { type: "string" },
      "tls-key": { type: "string" },
    },
  });
  if (values.root === undefined) throw new MagicError("usage", "--root is missing.");
  return {
    root: values.root,
    host: values.host,
    port: values.port === undefined ? undefined : portOf(values.port),
    idleAfterMs: values["started-by"] === "command" ? idleAfterOf(env["MAGIC_IDLE_EXIT_MS"] || undefined) : undefined,
    foreground: values.foreground ?? false,
    flags: values,
  };
}

function idleAfterOf(text = String(IDLE_AFTER)): number {
  if (!/^\d+$/.test(text)) throw new MagicError("usage", `MAGIC_IDLE_EXIT_MS=${text} is no number of milliseconds.`);
  return Number(text);
}

function portOf(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new MagicError("usage", `${text} is not a port: 0 to 65535.`);
  return port;
}
