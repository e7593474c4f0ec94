// Zygotes kept ready, so that a new version serves after milliseconds and not after the 100 that Node takes to start.
import { availableParallelism } from "node:os";
import { openPlaces } from "#shared/places.ts";
import type { Cell } from "./cell.ts";

export interface CellPool {
  /**
   * A zygote nobody has used; waits where none is ready: what can be `overtaken` (a reload) in a line of its own, as there may be hundreds.
   * Rejects where that fires before it is started.
   */
  take(overtaken?: AbortSignal): Promise<Cell>;
  /** A zygote that stays in the pool, to be asked about its lockdown. */
  peek(): Promise<Cell>;
  close(): Promise<void>;
}

const RETRY_MS = 1_000;
/** Of hundreds that a checkout of a project asks for at once, none would serve before the last one was started. */
const STARTING_AT_ONCE = Math.max(4, availableParallelism());
/** Starting a zygote takes a core for 100 ms: it waits until what was taken serves, while there is another one for who comes next. */
const REFILL_AFTER_MS = 60;

export function openPool(options: { size: number; start(): Promise<Cell> }): CellPool {
  const closing = new AbortController();
  const { signal: closed } = closing;
  const starts = openPlaces({ atOnce: STARTING_AT_ONCE, refusal: () => new Error("nobody needs the cell any more") });
  const start = (overtaken?: AbortSignal): Promise<Cell> =>
    starts.hold(options.start, overtaken ?? closed, overtaken ? 1 : 0);
  // One until somebody needs a cell: a daemon without controllers should cost little.
  let size = Math.min(1, options.size);
  /** Ready or starting, oldest first. */
  const zygotes: Promise<Cell>[] = [];

  function fill(): void {
    // One at a time in the background: starting several at once would slow the calls that are being served.
    if (closed.aborted || zygotes.length >= size) return;
    const zygote = add();
    zygote.then(fill, () => setTimeout(fill, RETRY_MS).unref());
  }

  function add(): Promise<Cell> {
    const zygote = start();
    zygotes.push(zygote);
    const forget = (): void => {
      const at = zygotes.indexOf(zygote);
      if (at >= 0) zygotes.splice(at, 1);
    };
    zygote.then((cell) => cell.gone.then(forget), forget);
    return zygote;
  }

  fill();
  return {
    async take(overtaken) {
      for (;;) {
        if (closed.aborted) throw new Error("the pool is closed");
        size = options.size;
        const zygote = zygotes.shift() ?? start(overtaken);
        if (zygotes.length > 0) setTimeout(fill, REFILL_AFTER_MS).unref();
        else setImmediate(fill);
        const cell = await zygote;
        // A zygote that died while it waited (somebody killed it) is not handed out.
        if (!(await isGone(cell))) return cell;
      }
    },
    peek: () => zygotes[0] ?? add(),
    async close() {
      closing.abort();
      const all = zygotes.splice(0);
      await Promise.all(
        all.map((zygote) =>
          zygote.then(
            (cell) => {
              cell.kill("killed", "the pool was closed");
              return cell.gone;
            },
            () => undefined,
          ),
        ),
      );
    },
  };
}

async function isGone(cell: Cell): Promise<boolean> {
  return (await Promise.race([cell.gone, Promise.resolve(null)])) !== null;
}
