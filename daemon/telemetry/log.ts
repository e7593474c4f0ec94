// The logger: one JSON line per event, with time, level, event and whatever fields belong to it. A line gets its cursor here;
// where it goes (the stream of log-stream.ts) is the sinks' matter. Nothing here touches the disk.
import { pino } from "pino";
import { isMagicError } from "#contract/errors.ts";
import { type Clock, rfc3339, systemClock } from "#shared/clock.ts";
import { sortable } from "#shared/ids.ts";
import { isJson, withoutControls } from "#shared/json-text.ts";
import { redactor } from "#shared/redact.ts";

export const levels = ["debug", "info", "warn", "error"] as const;
export type Level = (typeof levels)[number];

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** A logger whose every line carries these fields too. */
  child(fields: LogFields): Logger;
}

/** One finished line. Cursors sort by time, also across restarts of the daemon; `text` is the JSON without a newline. */
export interface LogLine {
  readonly cursor: string;
  readonly text: string;
}

/** Where the cursor stands in a line's text. */
export const CURSOR_AT = '{"cursor":"'.length;

/** A line by its text; undefined for anything that is not a log line. */
export function parseLogLine(text: string): LogLine | undefined {
  const cursor = /^\{"cursor":"([0-9a-z]{26})",/.exec(text)?.[1];
  return cursor === undefined ? undefined : { cursor, text };
}

/** Where lines go. Must return at once: it runs inside the call that logs. */
export type LogSink = (line: LogLine) => void;

export interface LoggerOptions {
  /** The least important level that is written; asked at every line. By default info. */
  readonly minimum?: () => Level;
  readonly sinks: readonly LogSink[];
  readonly clock?: Clock;
  /** Secrets to strike out wherever they appear; read at every line, so that later ones count too: in another list. */
  readonly secrets?: () => readonly string[];
}

const digits = "0123456789abcdefghjkmnpqrstvwxyz";

/** The cursor that stands before every line of that moment and after every earlier one. */
export function cursorAt(ms: number): string {
  let text = "";
  for (let shift = 9; shift >= 0; shift--) text += digits[Math.floor(ms / 32 ** shift) % 32];
  return text + "0".repeat(16);
}

/** The moment that a cursor names: milliseconds since the epoch. */
export function momentOfCursor(cursor: string): number {
  return [...cursor.slice(0, 10)].reduce((ms, digit) => ms * 32 + digits.indexOf(digit), 0);
}

const MAX_LINE = 64 * 1024;
/** What is left of a longer one. */
const MAX_HEAD = 4096;

/** A logger that hands every line, redacted and with its cursor, to all sinks. */
export function createLogger(options: LoggerOptions): Logger {
  const clock = options.clock ?? systemClock;
  let secrets: readonly string[] | undefined;
  let redact = redactor();
  /** One of the secrets may be part of a number. */
  let numeric = false;
  const redactorNow = () => {
    const now = options.secrets?.();
    if (now !== secrets) {
      redact = redactor(now);
      numeric = now?.some((secret) => /^[\d.eE+-]*$/.test(secret.trim())) ?? false;
    }
    secrets = now;
    return redact;
  };
  /**
   * `members`: the line's JSON behind its opening brace. `texts`: the texts among its values, where they alone can hold a secret: a third of a
   * line, whose numbers and names are the program's own.
   */
  const write = (now: number, members: string, texts?: string) => {
    const cursor = sortable(now);
    const strike = redactorNow();
    const harmless = texts !== undefined && !numeric && members.length < MAX_LINE && isClean(texts, strike);
    // Whoever reads the file, or stands at the terminal of a daemon in the foreground, reads what strangers wrote.
    const clean = harmless ? members : withoutControls(redacted(bounded(members, strike), strike));
    const line = { cursor, text: `{"cursor":"${cursor}",${clean}` };
    for (const sink of options.sinks) sink(line);
  };
  const timestamp = (now = clock.now()) => `,"time":"${rfc3339(now)}"`;
  const root = pino(
    {
      base: null,
      level: "debug",
      messageKey: "event",
      timestamp,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => write(clock.now(), line.slice(1).trimEnd()) },
  );
  const minimum = options.minimum ?? (() => "info");
  const wanted = (level: Level) => levels.indexOf(level) >= levels.indexOf(minimum());
  const wrap = (inner: pino.Logger, plain: boolean): Logger => {
    const at =
      (level: Level) =>
      (event: string, fields: LogFields = {}) => {
        if (!wanted(level)) return;
        const texts = plain ? textsOf(fields) : undefined;
        if (texts === undefined) return inner[level](fields, event);
        const now = clock.now();
        write(now, `"level":"${level}"${timestamp(now)},${membersOf(fields)}"event":${JSON.stringify(event)}}`, texts);
      };
    return {
      debug: at("debug"),
      info: at("info"),
      warn: at("warn"),
      error: at("error"),
      child: (fields) => wrap(inner.child(fields), false),
    };
  };
  return wrap(root, true);
}

// The lines of every call hold nothing but texts and numbers: JSON itself writes them, in a fifth of the time. What may throw, go in
// circles or be large is pino's: undefined.
function textsOf(fields: LogFields): string | undefined {
  let texts = "";
  for (const key in fields) {
    const value = fields[key];
    if (typeof value === "string") texts += `${value}\n`;
    else if (typeof value === "object" ? value !== null : typeof value === "bigint") return undefined;
  }
  return texts;
}

function membersOf(fields: LogFields): string {
  const text = JSON.stringify(fields);
  return text === "{}" ? "" : `${text.slice(1, -1)},`;
}

/** A logger that drops everything. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLogger,
};

/** The fields by which an error is logged: message, code, stack and causes; never its other properties, which may hold secrets. */
export function errorFields(error: unknown, depth = 3): LogFields {
  if (!(error instanceof Error)) return { error: { message: String(error) } };
  const code = isMagicError(error) ? error.code : (error as NodeJS.ErrnoException).code;
  const cause = error.cause === undefined || depth === 0 ? {} : { cause: errorFields(error.cause, depth - 1)["error"] };
  return { error: { name: error.name, message: error.message, ...(code && { code }), stack: error.stack, ...cause } };
}

function isClean(texts: string, strike: (text: string) => string): boolean {
  return strike(texts) === texts && withoutControls(texts) === texts;
}

/** The texts and numbers of JSON. */
const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;

function redacted(members: string, redact: (text: string) => string): string {
  // A text that is JSON itself has what it quotes escaped twice here.
  if (!members.includes("\\")) {
    const clean = redact(members);
    if (clean === members || isJson(`{${clean}`)) return clean;
    // A secret of digits was part of a number.
  }
  // Each text and number by itself, which needs no stack however deep they lie.
  return members.replace(tokens, (token) => {
    const text = token.startsWith('"') ? (JSON.parse(token) as string) : token;
    const own = redact(text);
    return own === text ? token : JSON.stringify(own);
  });
}

// A line is kept whole in rings and sent to readers: one huge field must not fill them. What is cut off must not leave half a secret, also where
// long ones were struck out before it.
function bounded(members: string, redact: (text: string) => string): string {
  if (members.length < MAX_LINE) return members;
  const text = `{${members}`;
  const { time, level, event, request_id } = JSON.parse(text) as Record<string, unknown>;
  const cut = {
    level,
    time,
    request_id,
    event,
    truncated_from: text.length,
    head: redact(text.slice(0, MAX_LINE)).slice(0, MAX_HEAD),
  };
  return JSON.stringify(cut).slice(1);
}
