// Zygotes kept ready, so that a new version serves after milliseconds and not after the 100 that Node takes to start.
import type { Cell } from "./cell.ts";

export interface CellPool {
  /** A zygote nobody has used; waits where none is ready. */
  take(): Promise<Cell>;
  /** A zygote that stays in the pool, to be asked about its lockdown. */
  peek(): Promise<Cell>;
  close(): Promise<void>;
}

const RETRY_MS = 1_000;
/** Starting a zygote takes a core for 100 ms: it waits until what was taken serves, while there is another one for who comes next. */
const REFILL_AFTER_MS = 60;

export function openPool(options: { size: number; start(): Promise<Cell> }): CellPool {
  const { start } = options;
  // One until somebody needs a cell: a daemon without controllers should cost little.
  let size = Math.min(1, options.size);
  let closed = false;
  /** Ready or starting, oldest first. */
  const zygotes: Promise<Cell>[] = [];

  function fill(): void {
    // One at a time in the background: starting several at once would slow the calls that are being served.
    if (closed || zygotes.length >= size) return;
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
    async take() {
      for (;;) {
        if (closed) throw new Error("the pool is closed");
        size = options.size;
        const zygote = zygotes.shift() ?? start();
        if (zygotes.length > 0) setTimeout(fill, REFILL_AFTER_MS).unref();
        else setImmediate(fill);
        const cell = await zygote;
        // A zygote that died while it waited (somebody killed it) is not handed out.
        if (!(await isGone(cell))) return cell;
      }
    },
    peek: () => zygotes[0] ?? add(),
    async close() {
      closed = true;
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
