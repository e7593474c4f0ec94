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
/** How often the storage is told again what it could not be told of a key. */
const OWED_MS = 1_000;
/** How often the answer of another daemon's call is looked for: at first, and at the last. */
const FIRST_LOOK_MS = 50;
const LAST_LOOK_MS = 1_000;

/** An answer that any number of callers can be given. */
type Shared = { readonly status: number; readonly headers: Record<string, string> } & (
  | { readonly body: WholeBody; readonly recording?: never }
  | { readonly recording: Recording; readonly body?: never }
);

/** What the storage has yet to hear of a key: as long as it does not, other daemons wait for its call. */
interface Debt {
  pay(): Promise<void>;
  paying?: Promise<void> | undefined;
}

interface UnderWay {
  readonly fingerprint: string;
  readonly shared: Promise<Shared>;
  /** Settles when the key is free of this process. */
  over: Promise<void>;
}

export function createKeyed(store: KeyStore, sealer: Sealer, clock: Clock, logger: Logger): Keyed {
  const underWay = new Map<string, UnderWay>();
  const owed = new Map<string, Debt>();
  let retry: NodeJS.Timeout | undefined;

  const pay = async (id: string): Promise<void> => {
    const debt = owed.get(id);
    if (!debt) return;
    debt.paying ??= debt.pay().then(
      () => void owed.delete(id),
      (error: unknown) => {
        debt.paying = undefined;
        throw error;
      },
    );
    await debt.paying;
  };
  const payAll = async (): Promise<void> => {
    clearTimeout(retry);
    retry = undefined;
    try {
      for (const id of owed.keys()) await pay(id);
    } catch {
      payLater();
    }
  };
  const payLater = (): void => {
    retry ??= setTimeout(() => void payAll(), OWED_MS).unref();
  };
  const owe = async (id: string, work: Debt["pay"]): Promise<void> => {
    owed.set(id, { pay: work });
    await pay(id).catch(payLater);
  };

  const begin = async (call: GatewayCall, owner: string, key: string, fingerprint: string): Promise<KeyRow | null> => {
    const now = clock.now();
    try {
      return await store.begin({
        owner,
        key,
        fingerprint,
        request_id: call.requestId,
        now: rfc3339(now),
        expires_at: rfc3339(now + KEEP_MS),
      });
    } catch (error) {
      // It may have been taken all the same.
      if (isUncertain(error)) void owe(idOf(owner, key), () => store.release({ owner, key }));
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
    const id = idOf(owner, key);
    // First: what it is found to be depends on that.
    await pay(id);
    const row = await beginOrJoin(call, owner, key, fingerprint);
    if (row) return give(stored(row, fingerprint, sealer), true);
    const release = () => owe(id, () => store.release({ owner, key }));
    // Of a call of which nobody knows the outcome.
    const abandon = () => void owe(id, () => store.abandon({ owner, key }));
    let answer: GatewayAnswer;
    try {
      answer = await execute();
    } catch (error) {
      if (error instanceof MagicError && error.code !== "internal") await release();
      else abandon();
      throw error;
    }
    const { status, headers } = answer;
    const save = async (stream: boolean, body: readonly Uint8Array[]) => {
      if (answer.cut?.()) return abandon();
      const plain = encodeAnswer(answer, stream, body);
      try {
        await store.finish({ owner, key, answer: sealer.seal(plain, placeOf(owner, key)) });
      } catch (error) {
        abandon();
        throw error;
      }
    };
    if (!answer.stream) {
      await (answer.undone ? release() : save(false, [Buffer.from(answer.body)]));
      return give({ status, headers, body: answer.body }, false);
    }
    const recording = createRecording(MAX_ANSWER);
    give({ status, headers, recording }, false);
    try {
      await answer.stream.pipe(recording.sink);
      if (recording.overflowed()) {
        abandon();
        throw new MagicError("payload_too_large", "The answer is too large to be kept.");
      }
      await save(true, recording.frames());
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
      while ((await store.purge({ now: rfc3339(clock.now()), limit: PURGED })) === PURGED);
    },
    async idle() {
      await Promise.all([...underWay.values()].map(({ over }) => over));
      await payAll();
      clearTimeout(retry);
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
