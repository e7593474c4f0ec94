// `console` in a cell: native output goes nowhere, so each line becomes a log frame of the invocation whose code runs.
import { Console } from "node:console";
import { Writable } from "node:stream";
import { currentInvocation } from "./invocation.ts";
import type { Log } from "./request.ts";

const LEVELS = { debug: "debug", log: "info", info: "info", warn: "warn", error: "error", trace: "debug" } as const;
const MAX_LINE = 16 * 1024;

export function consoleToFrames(log: Log): void {
  function line(level: string, text: string): void {
    const cut = text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text;
    log(currentInvocation(), level, cut);
  }
  const streamOf = (level: string): Writable =>
    new Writable({
      decodeStrings: false,
      write(chunk: string | Buffer, _encoding, done) {
        line(level, String(chunk).replace(/\n$/, ""));
        done();
      },
    });
  // One formatter a level: console.table, dir, group and their like come out of the same code as Node's own.
  const consoles = { info: new Console(streamOf("info")), warn: new Console(streamOf("warn")) };
  const target = globalThis.console as unknown as Record<string, unknown>;
  for (const name of Object.keys(target)) {
    const source = (name === "error" || name === "warn" || name === "trace"
      ? consoles.warn
      : consoles.info) as unknown as Record<string, unknown>;
    if (typeof source[name] === "function") target[name] = (source[name] as () => void).bind(source);
  }
  for (const [name, level] of Object.entries(LEVELS)) {
    const one = new Console(streamOf(level)) as unknown as Record<string, () => void>;
    target[name] = one["log"]?.bind(one);
  }
  for (const [name, level] of [
    ["stdout", "info"],
    ["stderr", "error"],
  ] as const)
    Object.defineProperty(process, name, { value: streamOf(level), configurable: false, writable: false });
}
