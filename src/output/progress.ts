// Progress of long work on stderr: ora's spinner, with a bar where it is known how much of the work is done.
import type { Ora } from "ora";
import { oneLine } from "./paint.ts";

export interface Progress {
  /** Another label; `share` of the work is done, 0 to 1. */
  text(label: string, share?: number): void;
  /** Ends it; with a text, that line stays. */
  done(text?: string): void;
  fail(text?: string): void;
}

interface ProgressOptions {
  readonly label: string;
  readonly stream: NodeJS.WriteStream;
  /** False in pipes, CI, --quiet and machine formats: nothing is shown. */
  readonly animated: boolean;
  readonly coloured: boolean;
}

const silent: Progress = { text: () => {}, done: () => {}, fail: () => {} };
// Quick work shows no spinner, and does not pay for loading one.
const DELAY_MS = 120;

export function createProgress(options: ProgressOptions): Progress {
  if (!options.animated) return silent;
  // Tables' names and vendors' words are in it.
  let line = oneLine(options.label);
  let ended = false;
  let spinner: Ora | undefined;
  const { stream, coloured } = options;
  const timer = setTimeout(async () => {
    const { default: ora } = await import("ora");
    if (!ended) spinner = ora({ text: line, stream, color: coloured && "cyan", discardStdin: false }).start();
  }, DELAY_MS);
  const end = (mark: "succeed" | "fail", text?: string) => {
    if (ended) return;
    ended = true;
    clearTimeout(timer);
    if (text === undefined) spinner?.stop();
    else if (spinner) spinner[mark](oneLine(text));
    else stream.write(`${mark === "succeed" ? "✔" : "✖"} ${oneLine(text)}\n`);
  };
  return {
    text: (label, share) => {
      line = `${share === undefined ? "" : `${bar(share)} `}${oneLine(label)}`;
      if (spinner) spinner.text = line;
    },
    done: (text) => end("succeed", text),
    fail: (text) => end("fail", text),
  };
}

/** Its characters. */
const BAR = 16;

function bar(share: number): string {
  const filled = Math.round(Math.min(1, share) * BAR);
  return "━".repeat(filled) + "─".repeat(BAR - filled);
}
