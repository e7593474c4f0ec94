// `request_window_splitting`: an interval that the vendor refuses is read in two halves.
import { MagicError } from "#contract/errors.ts";
import { durationMs } from "../http/budget.ts";
import { WindowRefused } from "../http/errors.ts";
import { type Component, manifestError, optionalChild, optionalText } from "../manifest/component.ts";
import type { Cursor, Interval } from "./cursor.ts";

/** Halves of halves of halves: a thousandth of what was asked for first. */
const MAX_DEPTH = 10;

/** The halves of an interval that was refused. @throws what it was refused with, where it is not to be split further. */
export type Halves = (error: unknown, interval: Interval | undefined, depth: number) => readonly Interval[];

export function halvesOf(retriever: Component, sync: Component | undefined, cursor: Cursor | undefined): Halves {
  const component = optionalChild(retriever, "request_window_splitting");
  const least = component && optionalText(component, "min_split_window");
  if (component && (!cursor || !sync?.["cursor_granularity"] || sync["is_client_side_incremental"] === true))
    throw manifestError("request_window_splitting is for cursors with a cursor_granularity that requests are told of");
  const smallest = least === undefined ? undefined : BigInt(durationMs(least)) * 1000n;
  return (error, interval, depth) => {
    if (!(error instanceof WindowRefused)) throw error;
    if (!component) throw refused(error, "the manifest has no request_window_splitting");
    const halves = interval && depth < MAX_DEPTH ? cursor?.halves(interval, smallest) : undefined;
    if (halves) return halves;
    const window = Object.values(interval?.variables ?? {}).join(" to ");
    throw refused(error, `the window ${window} is not split further`, optionalText(component, "failure_message"));
  };
}

function refused(error: MagicError, why: string, advice?: string): MagicError {
  const said = `${error.message}: ${why}`;
  return new MagicError("upstream_error", advice ? `${said}. ${advice}` : said);
}
