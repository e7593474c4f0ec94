// Makes the Output for a format: three renderers behind one interface.
import type { Format, Output, Streams, TextForm } from "./output.ts";
import { createPaint, printable, printableJson, wantsColour } from "./paint.ts";
import { createProgress } from "./progress.ts";
import { columnsOf, wrap } from "./wrap.ts";

export interface OutputOptions {
  readonly format: Format;
  readonly quiet: boolean;
  readonly env: NodeJS.ProcessEnv;
  readonly streams: Streams;
}

/** Colour and cursor codes reach stderr only where stdout is a terminal as well: else a script is at work. */
export function createOutput(options: OutputOptions): Output {
  const { format, quiet, env, streams } = options;
  const terminal = streams.stdout.isTTY === true && streams.stderr.isTTY === true;
  const paint = createPaint(format === "text" && wantsColour(env, streams.stdout.isTTY === true));
  const notes = createPaint(wantsColour(env, terminal));
  const interactive = terminal && streams.stdin.isTTY === true && !env["CI"] && format === "text";
  const toStderr = (text: string) =>
    streams.stderr.write(`${wrap(printable(text, notes.enabled), columnsOf(streams.stderr))}\n`);
  const renderer = renderers[format]((text) => void streams.stdout.write(`${text}\n`), paint);
  return {
    format,
    interactive,
    paint,
    columns: columnsOf(streams.stdout),
    result: renderer.result,
    event: renderer.event,
    events: async (documents, text) => {
      if (format === "json") return renderer.result(await Array.fromAsync(documents));
      for await (const each of documents) renderer.event(each, text(each));
    },
    fragment: (text) => void (format === "text" && streams.stdout.write(printable(text, paint.enabled))),
    note: (text) => void (quiet || toStderr(text)),
    warn: (text) => void toStderr(`${notes.yellow("warning:")} ${text}`),
    progress: (label) =>
      // Of a terminal whose width nobody has set (a bare pty, 0 columns) ora would clear lines without end.
      createProgress({
        ...{ label, stream: streams.stderr, coloured: notes.enabled },
        animated: interactive && !quiet && streams.stderr.columns !== 0,
      }),
    end: renderer.end,
  };
}

type Renderer = Pick<Output, "result" | "event" | "end">;
type Write = (text: string) => void;

const renderers: Record<Format, (write: Write, paint: Output["paint"]) => Renderer> = {
  text: (write, paint) => {
    const show = (document: unknown, text?: TextForm) => {
      const shown = text ? printable(text(paint), paint.enabled) : printableJson(document, 2);
      if (shown !== "") write(shown);
    };
    return { result: show, event: show, end: () => {} };
  },
  // One document whatever happens: events are gathered, and are the document where there is no result.
  json: (write) => {
    const events: unknown[] = [];
    let done = false;
    return {
      result: (document) => {
        done = true;
        write(printableJson(document, 2));
      },
      event: (document) => void events.push(document),
      end: () => {
        if (!done && events.length > 0) write(printableJson(events, 2));
      },
    };
  },
  ndjson: (write) => {
    const line = (document: unknown) => write(printableJson(document, 0));
    return { result: line, event: line, end: () => {} };
  },
};
