// The one way out of a command. Data goes to stdout in one of three forms, everything else to stderr.
import type { Paint } from "./paint.ts";
import type { Progress } from "./progress.ts";

export const formats = ["text", "json", "ndjson"] as const;
/** text for people; json: one document; ndjson: one document a line, for streams. */
export type Format = (typeof formats)[number];

/** Makes the text form of a document. Without one, text is the document as indented JSON. */
export type TextForm = (paint: Paint) => string;

export interface Output {
  readonly format: Format;
  /** True where a person sits at a terminal: prompts, spinners and keys are for these alone. */
  readonly interactive: boolean;
  /** Colours for stdout. */
  readonly paint: Paint;
  /** Of the terminal that stdout is; Infinity where it is none. */
  readonly columns: number;
  /** The command's one document. */
  result(document: unknown, text?: TextForm): void;
  /** One of many: a line of ndjson, a line of text; with json all of them are printed as one array at the end. */
  event(document: unknown, text?: TextForm): void;
  /** A list, each of which is an event; with json the array of them, also where there are none. */
  events<T>(documents: Iterable<T> | AsyncIterable<T>, text: (document: T) => TextForm): Promise<void>;
  /** A piece of running text, as it comes; only text has any. */
  fragment(text: string): void;
  /** For people, on stderr; silent with --quiet. */
  note(text: string): void;
  /** On stderr, also with --quiet. */
  warn(text: string): void;
  /** Long work: a spinner, with a bar where a share is told. Nothing where nobody watches. */
  progress(label: string): Progress;
  /** Writes what is still held back; main calls it once. */
  end(): void;
}

/** Where the bytes go; a test passes its own. */
export interface Streams {
  readonly stdout: NodeJS.WriteStream;
  readonly stderr: NodeJS.WriteStream;
  readonly stdin: NodeJS.ReadStream;
}
