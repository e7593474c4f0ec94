// Progress of long work on stderr: ora's spinner, whose text is a bar with rate and time left where the total is known.
import type { Ora } from "ora";
import { printable } from "./paint.ts";

export interface Progress {
  /** Work done so far, in the total's unit. */
  update(done: number): void;
  /** Another label. */
  text(label: string): void;
  /** Ends it; with a text, that line stays. */
  done(text?: string): void;
  fail(text?: string): void;
}

interface ProgressOptions {
  readonly label: string;
  readonly total: number | undefined;
  readonly stream: NodeJS.WriteStream;
  /** False in pipes, CI, --quiet and machine formats: nothing is shown. */
  readonly animated: boolean;
}

const silent: Progress = { update: () => {}, text: () => {}, done: () => {}, fail: () => {} };
// Quick work shows no spinner, and does not pay for loading one.
const DELAY_MS = 120;

export function createProgress(options: ProgressOptions): Progress {
  if (!options.animated) return silent;
  const started = performance.now();
  let label = shown(options.label);
  let done = 0;
  let ended = false;
  let spinner: Ora | undefined;
  const line = () =>
    options.total === undefined ? label : `${label} ${bar(done, options.total, (performance.now() - started) / 1000)}`;
  const timer = setTimeout(async () => {
    const { default: ora } = await import("ora");
    if (!ended) spinner = ora({ text: line(), stream: options.stream, discardStdin: false }).start();
  }, DELAY_MS);
  const refresh = () => {
    if (spinner) spinner.text = line();
  };
  const end = (mark: "succeed" | "fail", text?: string) => {
    if (ended) return;
    ended = true;
    clearTimeout(timer);
    if (text === undefined) spinner?.stop();
    else if (spinner) spinner[mark](shown(text));
    else options.stream.write(`${mark === "succeed" ? "✔" : "✖"} ${shown(text)}\n`);
  };
  return {
    update: (value) => {
      done = value;
      refresh();
    },
    text: (value) => {
      label = shown(value);
      refresh();
    },
    done: (text) => end("succeed", text),
    fail: (text) => end("fail", text),
  };
}

// Tables' names and vendors' words are in it.
const shown = (text: string) => printable(text, false).replaceAll("\n", " ");

/** `━━━━────  42 %  1,250/s  8 s left` */
function bar(done: number, total: number, elapsedS: number, width = 24): string {
  const share = total > 0 ? Math.min(1, done / total) : 1;
  const filled = Math.round(share * width);
  const rate = elapsedS > 0 ? done / elapsedS : 0;
  const left = rate > 0 ? `${duration((total - done) / rate)} left` : "";
  return `${"━".repeat(filled)}${"─".repeat(width - filled)} ${String(Math.floor(share * 100)).padStart(3)} %  ${count(rate)}/s  ${left}`.trimEnd();
}

function count(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toPrecision(2);
}

/** Seconds as people say them: `8 s`, `2 min 5 s`, `1 h 3 min`. */
function duration(seconds: number): string {
  const whole = Math.max(0, Math.ceil(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
