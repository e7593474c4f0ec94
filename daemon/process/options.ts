// The daemon's own command line. `src/client/daemon` writes it; nobody else is meant to.
import { parseArgs } from "node:util";
import { MagicError } from "#contract/errors.ts";

export interface DaemonOptions {
  readonly root: string;
  readonly host: string | undefined;
  readonly port: number | undefined;
  readonly startedBy: "user" | "command";
  readonly foreground: boolean;
  readonly flags: Readonly<Record<string, string | boolean | undefined>>;
}

export function parseOptions(argv: readonly string[]): DaemonOptions {
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
    startedBy: values["started-by"] === "command" ? "command" : "user",
    foreground: values.foreground ?? false,
    flags: values,
  };
}

function portOf(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) throw new MagicError("usage", `${text} is not a port: 0 to 65535.`);
  return port;
}
