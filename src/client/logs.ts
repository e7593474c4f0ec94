// Following a daemon's log. The last cursor seen is kept, so that a lost connection or a restarted daemon costs no line and
// doubles none. A reader that does not keep up holds the socket back: nothing piles up here.
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import WebSocket from "ws";
import { errors, isMagicError, MagicError } from "#contract/errors.ts";
import type { LogFrame, LogQuery } from "#contract/wire/logs.ts";
import { onAbort } from "#shared/abort.ts";
import { backoff } from "#shared/backoff.ts";
import { collect } from "#shared/collect.ts";
import { head } from "./exchange.ts";
import { type ApiClient, foreign, isForeign, wedged } from "./http.ts";
import { refusal } from "./refusal.ts";

export type LogFilter = Omit<LogQuery, "after" | "limit">;

export interface FollowOptions {
  /** A client for the daemon; asked again after a connection was lost, since the daemon may be another process by then. */
  readonly client: () => Promise<ApiClient>;
  readonly filter?: LogFilter;
  readonly after?: string;
  readonly signal: AbortSignal;
  /** Told when the connection is lost; `attempt` counts from 1. */
  readonly onLost?: (attempt: number, error: Error) => void;
}

const LONGEST_WAIT = 2_000;
/** Milliseconds without a sign of life after which a connection counts as lost. */
const SILENCE = 10_000;
const LONGEST_REFUSAL = 1024 * 1024;

/** Frames as they come, until the signal aborts. Refusals of the daemon (a bad filter, a missing scope) are thrown. */
export async function* followLogs(options: FollowOptions): AsyncGenerator<LogFrame> {
  let after = options.after;
  let live = false;
  for (let attempt = 0; !options.signal.aborted; attempt++) {
    try {
      const client = await options.client();
      for await (const frame of framesOf(
        client,
        { ...options.filter, ...(after !== undefined && { after }) },
        options.signal,
      )) {
        attempt = 0;
        if (frame.type === "line") after = frame.line.cursor;
        // After a reconnection what comes is what was missed: for the caller the stream is still the same.
        if (frame.type === "live" && live) continue;
        live ||= frame.type === "live";
        yield frame;
      }
      if (options.signal.aborted) return;
      options.onLost?.(attempt + 1, new Error("the daemon closed the stream"));
    } catch (error) {
      if (options.signal.aborted) return;
      // One that does nothing, or is none, is told, where nothing was ever read from it.
      if (isMagicError(error) && (!errors[error.code].retryable || (!live && error.extra["reason"] !== undefined)))
        throw error;
      options.onLost?.(attempt + 1, error as Error);
    }
    await sleep(backoff(attempt, 50, LONGEST_WAIT), undefined, { signal: options.signal }).catch(() => undefined);
  }
}

const PAUSE_AT = 1_000;

async function* framesOf(client: ApiClient, query: LogQuery, signal: AbortSignal): AsyncGenerator<LogFrame> {
  const url = new URL("/v1/logs/stream", client.url);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  // The cursor says where to go on: `since` counts only until there is one.
  const { since, ...rest } = query;
  for (const [name, value] of Object.entries(query.after === undefined ? query : rest))
    if (value !== undefined) url.searchParams.set(name, String(value));
  const socket = new WebSocket(url, {
    headers: client.token === undefined ? {} : { authorization: `Bearer ${client.token}` },
    perMessageDeflate: false,
    maxPayload: 16 * 1024 * 1024,
    handshakeTimeout: SILENCE,
  });
  const waiting: LogFrame[] = [];
  let failure: Error | undefined;
  let ended = false;
  let wake = () => {};
  const forget = onAbort(signal, () => socket.terminate());
  // Its system keeps the connection of a daemon that is frozen, or of a machine that is gone. A reader held back hears no answer.
  let heard = true;
  const pulse = setInterval(() => {
    if (!heard && !socket.isPaused) return socket.terminate();
    heard = false;
    if (socket.readyState === WebSocket.OPEN) socket.ping();
  }, SILENCE);
  socket.on("pong", () => {
    heard = true;
  });
  socket.on("message", (text) => {
    // An answer waits behind all that is on its way already.
    heard = true;
    waiting.push(JSON.parse(String(text)) as LogFrame);
    if (waiting.length >= PAUSE_AT) socket.pause();
    wake();
  });
  socket.on("unexpected-response", async (_request, response) => {
    failure = await refused(response, client.url);
    ended = true;
    wake();
  });
  socket.on("error", (error) => {
    // `ws` names it by its words alone.
    failure ??= /handshake has timed out/.test(error.message)
      ? wedged(client.url)
      : new MagicError("daemon_unavailable", `The log stream failed: ${error.message}.`, { cause: error });
  });
  socket.on("close", () => {
    ended = true;
    wake();
  });
  try {
    while (true) {
      const frame = waiting.shift();
      if (frame) {
        if (waiting.length < PAUSE_AT / 2) socket.resume();
        yield frame;
        continue;
      }
      if (ended) break;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    clearInterval(pulse);
    forget();
    socket.terminate();
  }
  if (failure) throw failure;
}

async function refused(response: IncomingMessage, url: string): Promise<MagicError> {
  const answer = head(response);
  if (answer.ok || isForeign(answer)) return foreign(url);
  return refusal(answer, String(await collect(response, LONGEST_REFUSAL).catch(() => "")));
}
