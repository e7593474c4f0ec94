// How fast each candidate is of late, for the `fastest` strategy. The time to a stream's first content and the time to a whole answer,
// which takes many times as long, are measured apart: one says nothing of the other. How well a candidate is counts beside how fast it
// is, and not as a time: what failed stands aside for a moment and is then tried by one call, while the others go where answers come from.
import type { Failure } from "#daemon/gateway/providers/failure.ts";
import type { Clock } from "#shared/clock.ts";

export interface Measurements {
  /** The candidate's pace, to be told of an attempt. */
  of(name: string, stream: boolean): Pace;
  /** Average milliseconds of its answers; null where nothing recent is known. */
  latency(name: string, stream: boolean): number | null;
  /** By what `fastest` sorts, the lowest first: milliseconds that a call would wait now. */
  expected(name: string, stream: boolean): number;
}

const WEIGHT_OF_NEW = 0.2;
const MAX_AGE_MS = 5 * 60_000;
/** How long a candidate that failed comes last, unless it asks for longer: as long as a circuit breaker stays open. */
const ASIDE_MS = 10_000;
/** Of names, which come from clients, each for streams and for whole answers. */
const MOST = 10_000;

/** Goes first, so that it gets measured. */
const UNKNOWN = -1;
/** Longer than any answer takes: being tried, the least busy first. */
const TRIED = 1e9;
/** Failed lately, the soonest back first. */
const ASIDE = 1e12;

export function createMeasurements(clock: Clock): Measurements {
  const streams = new Map<string, Pace>();
  const answers = new Map<string, Pace>();
  const known = (name: string, stream: boolean) => (stream ? streams : answers).get(name);
  return {
    of(name, stream) {
      const found = known(name, stream);
      if (found) return found;
      const paces = stream ? streams : answers;
      const [oldest] = paces.size < MOST ? [] : paces.keys();
      if (oldest !== undefined) paces.delete(oldest);
      const made = new Pace();
      paces.set(name, made);
      return made;
    },
    latency: (name, stream) => known(name, stream)?.latency(clock.monotonic()) ?? null,
    expected: (name, stream) => known(name, stream)?.expected(clock.monotonic()) ?? UNKNOWN,
  };
}

/** Of one candidate, in milliseconds of the monotonic clock. */
export class Pace {
  #average: number | null = null;
  #answeredAt = 0;
  /** Until when it comes last, having failed; null once it has answered again. */
  #asideUntil: number | null = null;
  #underWay = 0;
  /** Since when several calls are under way and nothing has come of any of them. */
  #silentSince = 0;

  begun(now: number): void {
    if (this.#underWay++ <= 1) this.#silentSince = now;
  }

  /** @param failed null: it answered, a stream with its first content. */
  ended(startedAt: number, now: number, failed: Failure | null): void {
    this.#underWay--;
    const ms = now - startedAt;
    if (failed?.kind === "aborted") this.#left(ms, now);
    else {
      this.#silentSince = now;
      if (!failed) this.#answered(ms, now);
      // A refusal of this very request says nothing of the next one.
      else if (failed.kind !== "invalid") this.failed(now, failed.retryAfterMs);
    }
  }

  /** @param hintMs when to come again, as it says itself. */
  failed(now: number, hintMs: number | null = null): void {
    this.#asideUntil = now + Math.max(ASIDE_MS, Math.min(hintMs ?? 0, MAX_AGE_MS));
  }

  latency(now: number): number | null {
    return now - this.#answeredAt <= MAX_AGE_MS ? this.#average : null;
  }

  expected(now: number): number {
    if (this.#asideUntil !== null && now < this.#asideUntil) return ASIDE + this.#asideUntil;
    const latency = this.#known(now);
    if (latency === null) return this.#underWay === 0 ? UNKNOWN : TRIED + this.#underWay;
    // One that hangs is known to before its first call is given up. A single call that takes long may have a long answer.
    return this.#underWay <= 1 ? latency : Math.max(latency, now - this.#silentSince);
  }

  // Of one that failed only its next answer tells.
  #known(now: number): number | null {
    return this.#asideUntil === null ? this.latency(now) : null;
  }

  #answered(ms: number, now: number): void {
    const known = this.latency(now);
    this.#average = known === null ? ms : known + WEIGHT_OF_NEW * (ms - known);
    this.#answeredAt = now;
    this.#asideUntil = null;
  }

  // The answer would have taken longer still.
  #left(ms: number, now: number): void {
    const known = this.#known(now);
    if (known === null) this.failed(now);
    else if (ms > known) this.#average = known + WEIGHT_OF_NEW * (ms - known);
  }
}
