// Idempotency-Key on completions: one upstream call a key. Whoever comes second joins the call under way or gets the stored answer,
// byte for byte. The key is durable before the dispatch and the answer before its last byte is sent; where the daemon died in
// between, nobody can know whether the provider acted, so that is said (409) and nothing is sent again.
import { createHash } from "node:crypto";
import { MagicError } from "#contract/errors.ts";
import { headers as names } from "#contract/protocol.ts";
import type { GatewayAnswer, GatewayCall } from "#daemon/gateway/call.ts";
import { errorEvent } from "#daemon/gateway/format/sse.ts";
import type { WholeBody } from "#daemon/gateway/providers/adapter.ts";
import { checkedKey, KEEP_MS } from "#daemon/identity/idempotency/state.ts";
import type { Place, Sealer } from "#daemon/secrets/sealer.ts";
import { errorFields, type Logger } from "#daemon/telemetry/log.ts";
import { pause } from "#shared/abort.ts";
import { type Clock, rfc3339 } from "#shared/clock.ts";
import { createRecording, type Recording } from "./recording.ts";
import type { KeyRow, KeyStore } from "./store.ts";
import { decodeAnswer, encodeAnswer } from "./stored-answer.ts";

export interface Keyed {
  /** Carries the call out once. `execute` throws only before anything was dispatched, or by a fault of our own. */
  run(call: GatewayCall, execute: () => Promise<GatewayAnswer>): Promise<GatewayAnswer>;
  /** Forgets expired keys. */
  purge(): Promise<void>;
  /** Resolves when no keyed call is under way any more. */
  idle(): Promise<void>;
}

/** At once, while others wait: an answer may be large. */
const PURGED = 100;
const MAX_ANSWER = 64 * 1024 * 1024;
/** How often the answer of another daemon's call is looked for: at first, and at the last. */
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;

/** An answer that any number of callers can be given. */
type Shared = { readonly status: number; readonly headers: Record<string, string> } & (
  | { readonly body: WholeBody; readonly recording?: never }
  | { readonly recording: Recording; readonly body?: never }
);

interface UnderWay {
  readonly fingerprint: string;
  readonly shared: Promise<Shared>;
  /** Settles when the key is free of this process. */
  over: Promise<void>;
}

export function createKeyed(store: KeyStore, sealer: Sealer, clock: Clock, logger: Logger): Keyed {
  const underWay = new Map<string, UnderWay>();
  /** Keys of which the storage did not say whether they were taken, and for which nothing was sent since: whoever finds them taken has them. */
  const unsure = new Map<string, number>();
  /** Keys that are this process's, and stay so where nobody knows what became of the call. Both until they have expired. */
  const taken = new Map<string, number>();
  const note = (noted: Map<string, number>, id: string) => void noted.set(id, clock.now() + KEEP_MS);

  const begin = async (call: GatewayCall, owner: string, key: string, fingerprint: string): Promise<KeyRow | null> => {
    const now = clock.now();
    const id = idOf(owner, key);
    try {
      const row = await store.begin({
        owner,
        key,
        fingerprint,
        request_id: call.requestId,
        now: rfc3339(now),
        expires_at: rfc3339(now + KEEP_MS),
      });
      // Of another body: it is whose it was.
      if (row && row.fingerprint !== fingerprint) return row;
      const own = unsure.delete(id) && row?.own && row.state === "open";
      return own ? null : row;
    } catch (error) {
      if (isUncertain(error) && !taken.has(id)) note(unsure, id);
      throw error;
    }
  };

  // Joins a call that another daemon on the same state has under way, as long as the client waits.
  const beginOrJoin = async (call: GatewayCall, owner: string, key: string, fingerprint: string) => {
    for (let wait = FIRST_LOOK_MS; ; wait = Math.min(2 * wait, LAST_LOOK_MS)) {
      const row = await begin(call, owner, key, fingerprint);
      if (!row?.alive || row.fingerprint !== fingerprint) return row;
      if (!(await pause(wait, call.signal)))
        throw new MagicError("idempotency_in_progress", "The first request with this Idempotency-Key is under way.");
    }
  };

  // The whole life of a key in this process; `shared` resolves as soon as callers can be answered.
  const carryOut = async (
    call: GatewayCall,
    owner: string,
    key: string,
    fingerprint: string,
    execute: () => Promise<GatewayAnswer>,
    give: (shared: Shared, replayed: boolean) => void,
  ): Promise<void> => {
    const row = await beginOrJoin(call, owner, key, fingerprint);
    if (row) return give(stored(row, fingerprint, sealer), true);
    const id = idOf(owner, key);
    note(taken, id);
    // Nothing was sent: should the storage not take it back, it is this process's to use.
    const release = async () => {
      taken.delete(id);
      note(unsure, id);
      await store.release({ owner, key });
      unsure.delete(id);
    };
    let answer: GatewayAnswer;
    try {
      answer = await execute();
    } catch (error) {
      if (error instanceof MagicError && error.code !== "internal") await release();
      throw error;
    }
    const { status, headers } = answer;
    const save = async (stream: boolean, body: readonly Uint8Array[]) => {
      const plain = encodeAnswer(answer, stream, body);
      await store.finish({ owner, key, answer: sealer.seal(plain, placeOf(owner, key)) });
      taken.delete(id);
    };
    if (!answer.stream) {
      if (answer.undone) await release();
      // What nobody knows the outcome of stays open: that is what the next daemon says.
      else if (!answer.cut?.()) await save(false, [Buffer.from(answer.body)]);
      return give({ status, headers, body: answer.body }, false);
    }
    const recording = createRecording(MAX_ANSWER);
    give({ status, headers, recording }, false);
    try {
      await answer.stream.pipe(recording.sink);
      if (recording.overflowed()) throw new MagicError("payload_too_large", "The answer is too large to be kept.");
      if (!answer.cut?.()) await save(true, recording.frames());
    } catch (error) {
      logger.error("gateway.idempotency_failed", { request_id: call.requestId, ...errorFields(error) });
      recording.replaceEnd(Buffer.from(errorEvent(notStored)));
    } finally {
      recording.finish();
    }
  };

  return {
    async run(call, execute) {
      const key = checkedKey(call.idempotencyKey ?? "");
      const owner = ownerOf(call);
      // Keyed: a plain one would let whoever copies the database try what was asked.
      const fingerprint = sealer.digest(fingerprintOf(call));
      const id = idOf(owner, key);
      for (let known = underWay.get(id); known; known = underWay.get(id)) {
        if (known.fingerprint !== fingerprint) throw reused();
        try {
          return answerFrom(await known.shared, true);
        } catch (error) {
          if (!isGivenUp(error) || call.signal.aborted) throw error;
          await known.over;
        }
      }
      let replay = false;
      const { promise: shared, resolve, reject } = Promise.withResolvers<Shared>();
      const entry: UnderWay = { fingerprint, shared, over: Promise.resolve() };
      underWay.set(id, entry);
      entry.over = carryOut(call, owner, key, fingerprint, execute, (answer, replayed) => {
        replay = replayed;
        resolve(answer);
      })
        .catch(reject)
        .finally(() => underWay.delete(id));
      return answerFrom(await shared, replay);
    },
    async purge() {
      for (const noted of [unsure, taken])
        for (const [id, expires] of noted) if (expires <= clock.now() && !underWay.has(id)) noted.delete(id);
      while ((await store.purge({ now: rfc3339(clock.now()), limit: PURGED })) === PURGED);
    },
    async idle() {
      await Promise.all([...underWay.values()].map(({ over }) => over));
    },
  };
}

const notStored = JSON.stringify({
  error: {
    message: "The answer could not be stored, so it does not count: the outcome of this key is unknown.",
    type: "server_error",
    param: null,
    code: "idempotency_outcome_unknown",
  },
});

function stored(row: KeyRow, fingerprint: string, sealer: Sealer): Shared {
  if (row.fingerprint !== fingerprint) throw reused();
  if (row.state === "open" || !row.answer)
    throw new MagicError(
      "idempotency_outcome_unknown",
      `The daemon stopped while the first request with this key (${row.request_id}) was under way: whether the provider acted is unknown, and nothing is sent again. Use a new key to send it anew.`,
    );
  const answer = decodeAnswer(sealer.open(row.answer, placeOf(row.owner, row.key)));
  const { status, headers } = answer;
  if (!answer.stream) return { status, headers, body: answer.body };
  const recording = createRecording(Number.POSITIVE_INFINITY);
  // What was stored was complete: nothing has to be withheld.
  void answer.stream.pipe(recording.sink).then(() => recording.finish());
  return { status, headers, recording };
}

function answerFrom(shared: Shared, replayed: boolean): GatewayAnswer {
  const headers = replayed ? { ...shared.headers, [names.idempotentReplayed]: "true" } : shared.headers;
  if (shared.recording)
    return { status: shared.status, headers, stream: { pipe: (sink) => shared.recording.read(sink) } };
  return { status: shared.status, headers, body: shared.body };
}

function reused(): MagicError {
  return new MagicError("idempotency_key_reused", "This Idempotency-Key was used with another body.");
}

function idOf(owner: string, key: string): string {
  return `${owner}\0${key}`;
}

/** Who came first has left while another daemon is at work on it; the others go on waiting. */
function isGivenUp(error: unknown): boolean {
  return error instanceof MagicError && error.code === "idempotency_in_progress";
}

/** Whether what failed may have been done all the same. */
function isUncertain(error: unknown): boolean {
  return error instanceof MagicError && error.extra["outcome"] === "unknown";
}

function ownerOf({ principal }: GatewayCall): string {
  return `${principal.type}:${principal.id ?? ""}:${principal.environment}`;
}

function placeOf(owner: string, key: string): Place {
  return { tenant: owner, row: `gateway_key:${key}`, field: "answer" };
}

// The bytes as they came, so `stream` is in it.
function fingerprintOf(call: GatewayCall): string {
  const hash = createHash("sha256").update(`${call.operation}\0${call.controller?.name ?? ""}\0`);
  return hash.update(call.raw ?? JSON.stringify(call.body)).digest("hex");
}
