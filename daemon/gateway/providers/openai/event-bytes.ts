// Where the events of a stream end in its bytes (WHATWG HTML, 9.2.5): pieces are gathered until an event has come whole.
import { MAX_EVENT } from "../events.ts";
import { brokenStream } from "../failure.ts";

const CR = 0x0d;
const LF = 0x0a;
const BLANK_LINE = Buffer.from("\n\n");

export class EventBytes {
  /** What came of an event that is not over yet are the first `#kept` bytes; searched when it is, since each search costs as much as all of it. */
  #store: Buffer = Buffer.alloc(0);
  #kept = 0;
  /** The last byte was a CR, which may be half of a CRLF: it has ended its line already. */
  #half = false;

  /** What came since the last event ended, its lines ended by LF alone; null where no event is known to end in it. */
  take(chunk: Buffer): Buffer | null {
    const came = this.#unified(chunk);
    if (this.#kept === 0) return came;
    if (!endsEvent(this.#store[this.#kept - 1], came)) {
      this.keep(came);
      return null;
    }
    const bytes = Buffer.concat([this.#store.subarray(0, this.#kept), came]);
    this.#kept = 0;
    return bytes;
  }

  /** Bytes of an event that is not over. Throws UpstreamError where it grows too large. */
  keep(rest: Buffer): void {
    const all = this.#kept + rest.length;
    if (all > MAX_EVENT) throw brokenStream(`An event of the provider's stream is larger than ${MAX_EVENT} bytes.`);
    if (all > this.#store.length) {
      const larger = Buffer.allocUnsafe(2 * all);
      this.#store.copy(larger, 0, 0, this.#kept);
      this.#store = larger;
    }
    rest.copy(this.#store, this.#kept);
    this.#kept = all;
  }

  /** What came of an event that is not over. */
  get rest(): string {
    return this.#store.toString("utf8", 0, this.#kept);
  }

  // One form of line ends makes the rest simple.
  #unified(chunk: Buffer): Buffer {
    const rest = this.#half && chunk[0] === LF ? chunk.subarray(1) : chunk;
    this.#half = chunk.at(-1) === CR;
    if (rest.indexOf(CR) < 0) return rest;
    return Buffer.from(rest.toString("latin1").replace(/\r\n?/g, "\n"), "latin1");
  }
}

// An event ends at an empty line, half of which may have come before.
function endsEvent(before: number | undefined, came: Buffer): boolean {
  return came.indexOf(BLANK_LINE) >= 0 || (came[0] === LF && before === LF);
}
