// An HTTP endpoint as a destination: batches of records as JSON, signed by Standard Webhooks where there is a secret, at least once.
// A batch's id is the same when it is sent again, by this run or by one that goes on from the same state, so that the receiver can tell;
// a record that has got back an earlier value is another batch.
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import { Agent, type Dispatcher, request as send } from "undici";
import { MagicError } from "#contract/errors.ts";
import type { Reject, StateKeeper, SyncEnd } from "#contract/sync.ts";
import type { Destination, OpenRequest, WritePlan, WriteSession } from "../../engine/destination.ts";
import { formatObjectName } from "../../engine/name.ts";
import { keyOf } from "../../engine/rejects.ts";
import { doneBy } from "../../engine/resume.ts";
import type { Source } from "../../engine/source.ts";
import { retryAfterSeconds } from "../../retry-after.ts";
import { objectOf } from "../files/jsonl.ts";
import { openState } from "./state.ts";

const BATCH_ROWS = 500;
const BATCH_BYTES = 1 << 20;
const ATTEMPTS = 5;
const TIMEOUT_MS = 30_000;
const LONGEST_WAIT_S = 60;

/** An endpoint is no source: it is checked here. */
export function httpDestination(end: SyncEnd, states?: StateKeeper): Destination & Pick<Source, "check" | "discover"> {
  let dispatcher: Dispatcher | undefined;
  const open = () => {
    dispatcher ??= dispatcherOf(end);
    return dispatcher;
  };
  return {
    // Whether it takes records only sending some would tell: it must answer at all.
    check: async () => {
      signerOf(end);
      const { body } = await send(end.url, {
        method: "HEAD",
        dispatcher: open(),
        headersTimeout: 10_000,
      }).catch((error: Error) => {
        throw new MagicError("unreachable", `${originOf(end.url)} does not answer: ${error.message}.`);
      });
      await body.dump();
    },
    discover: async () => [],
    open: (request) => openSession(end, open(), states, request),
    close: async () => {
      await dispatcher?.destroy();
    },
  };
}

// Redirects are not followed; the address that was checked is the one that is connected to.
function dispatcherOf({ address }: SyncEnd): Dispatcher {
  if (address === undefined) return new Agent();
  const family = address.includes(":") ? 6 : 4;
  return new Agent({
    connect: {
      lookup: (_host, options, done) => (options.all ? done(null, [{ address, family }]) : done(null, address, family)),
    },
  });
}

async function openSession(
  end: SyncEnd,
  dispatcher: Dispatcher,
  states: StateKeeper | undefined,
  request: OpenRequest,
): Promise<WriteSession> {
  const receiver = { end, dispatcher, signer: signerOf(end) };
  const kept = await openState(request, states);
  let plan: WritePlan | undefined;
  // What the run's attempts before this one were answered for as well.
  const { read, rejected } = doneBy(request.runId, kept?.committed.state ?? null);
  let sent = read - rejected;
  let bytes = 0;
  let batch = 0;
  let place = 0;
  let reached = kept?.committed.state ?? null;
  const begun = () => {
    if (!plan) throw new Error("the session has not begun");
    return plan;
  };
  const send = async (records: readonly string[]) => {
    const head = {
      sync: request.syncId,
      stream: request.stream,
      table: formatObjectName(request.table),
      primary_key: begun().primaryKey,
    };
    const body = `${JSON.stringify(head).slice(0, -1)},"records":[${records.join(",")}]}`;
    const since = begun().kind === "replace" ? request.runId : JSON.stringify(reached);
    const id = `msg_${createHash("sha256").update(`${since}:${batch++}:${body}`).digest("hex").slice(0, 26)}`;
    request.waiting(`an answer of ${originOf(end.url)}`);
    await deliver(receiver, id, body, request.signal);
    sent += records.length;
    bytes += body.length;
  };
  // Which records a batch holds depends on nothing but what came: when it came differs each time, and so would the ids.
  let waiting: string[] = [];
  let size = 0;
  const sendWaiting = async () => {
    const records = waiting;
    waiting = [];
    size = 0;
    if (records.length > 0) await send(records);
  };
  return {
    committed: kept?.committed ?? { state: null, schema: null },
    existing: [],
    stateApart: true,
    warnings: [],
    bytes: () => bytes,
    rawFormats: [],
    rawTypes: [],
    begin: async (wanted) => {
      if (wanted.deletes === "soft" || (wanted.deletes === "hard" && wanted.kind !== "replace"))
        throw new MagicError(
          "not_supported",
          "An HTTP endpoint cannot be told of deletions yet: use --deletes ignore.",
        );
      if (wanted.cursorField !== null && wanted.kind !== "replace" && kept === null)
        throw new MagicError(
          "validation_failed",
          "An incremental sync into an HTTP endpoint needs --state FILE: the endpoint cannot keep the cursor.",
        );
      plan = wanted;
      if (wanted.kind === "replace") sent = 0;
    },
    write: async (rows, places) => {
      const { columns } = begun();
      const name = keyOf(begun());
      const first = place;
      place += rows.length;
      const rejects: Reject[] = [];
      for (const [at, row] of rows.entries()) {
        const record = objectOf(row, columns);
        if (typeof record !== "string") {
          rejects.push({ key: name(row, places?.[at] ?? first + at), ...record });
          continue;
        }
        waiting.push(record);
        size += record.length;
        if (waiting.length >= BATCH_ROWS || size >= BATCH_BYTES) await sendWaiting();
      }
      return { written: rows.length - rejects.length, rejects };
    },
    checkpoint: async (stateAfter) => {
      await sendWaiting();
      reached = stateAfter([]);
      await kept?.keep({ state: reached, schema: begun().sourceSchema });
      batch = 0;
    },
    deleteMissing: async () => 0,
    merge: async () => {
      await sendWaiting();
      return [];
    },
    count: async () => (plan ? sent : null),
    commit: async (end) => {
      await kept?.keep({ state: end, schema: begun().sourceSchema });
      kept?.release();
    },
    abort: async () => kept?.release(),
  };
}

interface Receiver {
  readonly end: SyncEnd;
  readonly dispatcher: Dispatcher;
  /** null: batches are not signed. */
  readonly signer: Webhook | null;
}

// 429, 5xx and broken connections are tried again; anything else is the endpoint's word.
async function deliver(receiver: Receiver, id: string, body: string, signal: AbortSignal): Promise<void> {
  const { end, dispatcher } = receiver;
  for (let attempt = 1; ; attempt++) {
    let problem: string;
    let waitS = 2 ** (attempt - 1) / 2;
    try {
      const headers = { "content-type": "application/json", ...credentialsOf(receiver, id, body) };
      const answer = await send(end.url, {
        method: "POST",
        headers,
        body,
        dispatcher,
        signal,
        headersTimeout: TIMEOUT_MS,
        bodyTimeout: TIMEOUT_MS,
      });
      if (answer.statusCode >= 200 && answer.statusCode < 300) {
        await answer.body.dump({ limit: 65_536 });
        return;
      }
      problem = `status ${answer.statusCode}${await saidIn(answer.body)}`;
      if (answer.statusCode !== 429 && answer.statusCode < 500)
        throw new MagicError(
          answer.statusCode === 401 || answer.statusCode === 403 ? "credentials_rejected" : "destination_refused",
          `${originOf(end.url)} refused a batch of records: ${problem}.`,
        );
      const hint = retryAfterSeconds(String(answer.headers["retry-after"] ?? ""), Date.now()) ?? 0;
      if (hint > 0) waitS = Math.min(hint, LONGEST_WAIT_S);
    } catch (error) {
      if (error instanceof MagicError || signal.aborted) throw error;
      problem = (error as Error).message;
    }
    if (attempt === ATTEMPTS)
      throw new MagicError(
        "unreachable",
        `${originOf(end.url)} did not take a batch of records in ${ATTEMPTS} attempts: ${problem}.`,
      );
    await sleep(waitS * 1000, undefined, { signal });
  }
}

const SAID_LENGTH = 300;

// What an endpoint says of a batch that it does not take: its first line or so.
async function saidIn(body: Dispatcher.ResponseData["body"]): Promise<string> {
  let text = "";
  body.setEncoding("utf8");
  try {
    for await (const chunk of body) {
      text += chunk;
      if (text.length > SAID_LENGTH) break;
    }
  } catch {
    // It has refused the batch, and broken off what it said of it.
  }
  const said = text.slice(0, SAID_LENGTH).replace(/\s+/g, " ").trim();
  return said === "" ? "" : `, ${said.toWellFormed()}`;
}

// The sender of a batch, and with a secret that it is as it was sent.
function credentialsOf({ end, signer }: Receiver, id: string, body: string): Record<string, string> {
  const timestamp = new Date();
  const { username, password } = new URL(end.url);
  const token = end.credentials?.["token"];
  const basic = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const authorization = token
    ? `Bearer ${token}`
    : basic === ":"
      ? null
      : `Basic ${Buffer.from(basic).toString("base64")}`;
  return {
    "webhook-id": id,
    "webhook-timestamp": String(Math.floor(timestamp.getTime() / 1000)),
    ...(authorization === null ? {} : { authorization }),
    ...(signer === null ? {} : { "webhook-signature": signer.sign(id, timestamp, body) }),
  };
}

function signerOf({ credentials }: SyncEnd): Webhook | null {
  const secret = credentials?.["signing_secret"] ?? credentials?.["secret"];
  if (!secret) return null;
  try {
    return new Webhook(secret);
  } catch {
    throw new MagicError("validation_failed", "The signing secret is not base64, with whsec_ before it or without.");
  }
}

function originOf(url: string): string {
  return new URL(url).origin;
}
