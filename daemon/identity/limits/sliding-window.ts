// A sliding window that is exact: it remembers when each admitted call came, so that no window of its length, wherever it
// begins, ever holds more than the limit. Bounded: at most `limit` numbers, 80 kB for 10,000. Durations, not wall-clock times.

export interface Decision {
  readonly admitted: boolean;
  /** Calls that would be admitted right now, after this one. */
  readonly remaining: number;
  /** Milliseconds until the oldest call leaves the window; the whole window where it is empty. */
  readonly resetMs: number;
}

export class SlidingWindow {
  readonly limit: number;
  readonly windowMs: number;
  // A ring of times, oldest at #head.
  #times: Float64Array;
  #head = 0;
  #size = 0;

  constructor(limit: number, windowMs: number) {
    this.limit = limit;
    this.windowMs = windowMs;
    this.#times = new Float64Array(Math.min(limit, 64));
  }

  /** Admits and remembers a call at `now`, or refuses it and remembers nothing. `now` must not go back. */
  take(now: number): Decision {
    this.#forget(now);
    if (this.#size >= this.limit) return this.#decision(false, now);
    this.#push(now);
    return this.#decision(true, now);
  }

  /** Calls that may still come at `now`. */
  remaining(now: number): number {
    this.#forget(now);
    return this.limit - this.#size;
  }

  /** Remembers calls of the past, `ageMs` old; to be called for the oldest first. An age beyond the window is left out. */
  restore(now: number, ageMs: number, calls: number): void {
    if (ageMs >= this.windowMs) return;
    for (let left = calls; left > 0 && this.#size < this.limit; left--) this.#push(now - Math.max(0, ageMs));
  }

  /**
   * The calls in the window, oldest first, those of a 600th of it together: few enough to be stored often. A group is as old as its
   * youngest call: restored, it stays in the window for a moment too long, never too short.
   */
  groups(now: number): { readonly ageMs: number; readonly calls: number }[] {
    this.#forget(now);
    const found: { ageMs: number; calls: number }[] = [];
    const width = this.windowMs / 600;
    let began = Number.NEGATIVE_INFINITY;
    for (let index = 0; index < this.#size; index++) {
      const time = this.#at(index);
      const last = found.at(-1);
      if (last !== undefined && time - began < width) {
        last.ageMs = now - time;
        last.calls++;
      } else {
        began = time;
        found.push({ ageMs: now - time, calls: 1 });
      }
    }
    return found;
  }

  #decision(admitted: boolean, now: number): Decision {
    const resetMs = this.#size === 0 ? this.windowMs : this.#at(0) + this.windowMs - now;
    return { admitted, remaining: this.limit - this.#size, resetMs };
  }

  #forget(now: number): void {
    while (this.#size > 0 && now - this.#at(0) >= this.windowMs) {
      this.#head = (this.#head + 1) % this.#times.length;
      this.#size--;
    }
  }

  #push(time: number): void {
    if (this.#size === this.#times.length) this.#grow();
    this.#times[(this.#head + this.#size) % this.#times.length] = time;
    this.#size++;
  }

  #at(index: number): number {
    return this.#times[(this.#head + index) % this.#times.length] ?? 0;
  }

  #grow(): void {
    const grown = new Float64Array(Math.min(this.limit, this.#times.length * 2));
    for (let index = 0; index < this.#size; index++) grown[index] = this.#at(index);
    this.#times = grown;
    this.#head = 0;
  }
}
