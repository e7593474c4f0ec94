// Time limits that nearly never pass: one timer of Node's serves them all, so that to set one and to take it back costs a fraction of what
// a timer does. It keeps no process alive.

interface Link {
  before: Link | null;
  after: Link | null;
}

/** All that are running, behind this one; the newest first. */
const running: Link & { after: Deadline | null } = { before: null, after: null };
let timer: NodeJS.Timeout | undefined;
/** When it rings, by the monotonic clock. */
let rings = Number.POSITIVE_INFINITY;

export class Deadline implements Link {
  readonly #at: number;
  readonly #passed: () => void;
  before: Link | null = running;
  after: Deadline | null = running.after;

  /**
   * @param at milliseconds of the monotonic clock (`performance.now()`).
   * @param passed called once, then or a moment later, unless it is taken back before.
   */
  constructor(at: number, passed: () => void) {
    this.#at = at;
    this.#passed = passed;
    if (this.after) this.after.before = this;
    running.after = this;
    if (at < rings) ringAt(at);
  }

  /** Takes it back. Its neighbours are let go of: what has grown old would hold those behind it in memory. */
  clear(): void {
    if (this.before) this.before.after = this.after;
    if (this.after) this.after.before = this.before;
    this.before = null;
    this.after = null;
  }

  static ring(): void {
    rings = Number.POSITIVE_INFINITY;
    const now = performance.now();
    const due: Deadline[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (let one = running.after; one; one = one.after)
      if (one.#at <= now) due.push(one);
      else next = Math.min(next, one.#at);
    if (next < rings) ringAt(next);
    for (const one of due.sort((a, b) => a.#at - b.#at)) {
      // One of the others may have taken it back.
      if (one.before === null) continue;
      one.clear();
      one.#passed();
    }
  }
}

function ringAt(at: number): void {
  clearTimeout(timer);
  rings = at;
  timer = setTimeout(Deadline.ring, Math.max(1, Math.ceil(at - performance.now()))).unref();
}
