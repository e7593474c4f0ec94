// The live log over WebSocket at /v1/logs/stream. A reader names its last cursor and gets every line after it, once. Each has a
// position in the ring instead of a queue: one that does not keep up is told how many lines it missed.
import type { WebSocket } from "ws";
import { MagicError } from "#contract/errors.ts";
import type { LogFrame, LogQuery } from "#contract/wire/logs.ts";
import type { LogLine } from "#daemon/telemetry/log.ts";
import { matcher } from "#daemon/telemetry/log-filter.ts";
import type { LogHistory } from "#daemon/telemetry/log-history.ts";
import type { Clock } from "#shared/clock.ts";
import { filterOf, startOf } from "./log-query.ts";
import type { Upgrade } from "./upgrade.ts";

export interface LogHubOptions {
  readonly history: LogHistory;
  readonly clock: Clock;
}

/** Bytes that may wait in one reader's socket before it gets no more. */
const HIGH_WATER = 512 * 1024;
const BATCH = 200;
const PING_MS = 15_000;

export function logHub({ history, clock }: LogHubOptions): Upgrade {
  return {
    path: "/v1/logs/stream",
    scope: "logs:read",
    accept(parameters, principal) {
      const query = queryOf(parameters);
      const matches = matcher(filterOf(query, principal));
      // Without a start the stream begins with what is new.
      const start = query.after === undefined && query.since === undefined ? undefined : startOf(query, clock);
      return (socket) => void follow(socket, history, matches, start).catch(() => socket.terminate());
    },
  };
}

async function follow(
  socket: WebSocket,
  history: LogHistory,
  matches: (line: LogLine) => boolean,
  start: string | undefined,
): Promise<void> {
  const { stream } = history;
  let position = stream.bounds().next;
  let wake = () => {};
  const unsubscribe = stream.subscribe(() => wake());
  const stopPings = keepAlive(socket);
  socket.on("error", () => socket.terminate());
  socket.once("close", () => {
    unsubscribe();
    stopPings();
    wake();
  });
  if (start !== undefined) {
    const lines = history.since(start);
    try {
      for (;;) {
        const step = await lines.next();
        if (step.done) {
          position = step.value.position;
          break;
        }
        if (matches(step.value)) await sendLine(socket, step.value);
        if (socket.readyState !== socket.OPEN) return;
      }
    } finally {
      // It holds files, and one that is left open ends the process when it is collected.
      await lines.return({ position });
    }
  }
  sendFrame(socket, { type: "live" });
  while (socket.readyState === socket.OPEN) {
    const { lines, next, missed } = stream.read(position, BATCH);
    if (missed > 0) sendFrame(socket, { type: "missed", lines: missed });
    position = next;
    for (const line of lines) if (matches(line)) await sendLine(socket, line);
    if (lines.length < BATCH && stream.bounds().next === position)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    // Lines come in bursts: one turn of the loop gathers them.
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// Resolves when the reader may get more: at once, or when its socket has drained.
function sendLine(socket: WebSocket, line: LogLine): Promise<void> | undefined {
  if (socket.readyState !== socket.OPEN) return undefined;
  const full = socket.bufferedAmount > HIGH_WATER;
  if (!full) {
    socket.send(`{"type":"line","line":${line.text}}`);
    return undefined;
  }
  return new Promise((resolve) => {
    socket.once("close", resolve);
    socket.send(`{"type":"line","line":${line.text}}`, () => {
      socket.off("close", resolve);
      resolve();
    });
  });
}

function sendFrame(socket: WebSocket, frame: LogFrame): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(frame));
}

// A reader whose machine is gone never closes: it is dropped when it answers no ping.
function keepAlive(socket: WebSocket): () => void {
  let answered = true;
  socket.on("pong", () => {
    answered = true;
  });
  const timer = setInterval(() => {
    if (!answered && socket.bufferedAmount === 0) return socket.terminate();
    answered = false;
    socket.ping();
  }, PING_MS);
  timer.unref();
  return () => clearInterval(timer);
}

function queryOf(parameters: URLSearchParams): LogQuery {
  const known = ["since", "after", "controller", "request", "level"];
  const unknown = [...parameters.keys()].find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new MagicError("validation_failed", `Unknown query parameter ${unknown.slice(0, 50)}.`);
  const query = Object.fromEntries(parameters) as LogQuery;
  if (query.after !== undefined && !/^[0-9a-z]{26}$/.test(query.after))
    throw new MagicError("validation_failed", "after is not a cursor.");
  if (query.level !== undefined && !["debug", "info", "warn", "error"].includes(query.level))
    throw new MagicError("validation_failed", "level is debug, info, warn or error.");
  return query;
}
