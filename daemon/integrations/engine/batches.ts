// Between reading and writing: small batches are joined, and one is read ahead while the last is being written.
import type { Batch, PackedRows, StreamState } from "./source.ts";
import type { Row } from "./types.ts";

const JOIN_BYTES = 1 << 20;
const JOIN_ROWS = 5_000;
/** A COPY and its savepoint cost the server as much as some thousand rows. */
const JOIN_PACKED_BYTES = 2 << 20;
/** A source that gives little at a time is not waited for: its rows are progress. */
const JOIN_MS = 250;

/** Batches of a size worth a write. A batch with a state ends its group, so that a checkpoint can follow it. */
export async function* joined(batches: AsyncIterable<Batch>): AsyncGenerator<Batch> {
  let rows: Row[] = [];
  let places: number[] | null = null;
  let next = 0;
  let rejects: NonNullable<Batch["rejects"]>[number][] = [];
  let packed: PackedRows[] = [];
  let bytes = 0;
  let since = 0;
  const take = (state?: StreamState): Batch => {
    const more = { ...(places ? { places } : {}), ...(packed.length > 0 ? { packed: inOne(packed) } : {}) };
    const batch = { rows, bytes, rejects, ...more, ...(state ? { state } : {}) };
    rows = [];
    packed = [];
    places = places ? [] : null;
    rejects = [];
    bytes = 0;
    return batch;
  };
  for await (const batch of batches) {
    if (bytes === 0) since = performance.now();
    // The two kinds are written differently, and keep their order.
    if (batch.packed ? rows.length > 0 : packed.length > 0 && batch.rows.length > 0) yield take();
    if (batch.packed) packed.push(batch.packed);
    // Once records were left out, the numbers of the rows are told.
    if (batch.places && places === null) places = rows.map((_, at) => next - rows.length + at);
    if (places) for (let at = 0; at < batch.rows.length; at++) places.push(batch.places?.[at] ?? next + at);
    next = batch.places ? (batch.places.at(-1) ?? next - 1) + 1 : next + countOf(batch);
    if (rows.length === 0) rows = batch.rows as Row[];
    else for (const row of batch.rows) rows.push(row);
    for (const reject of batch.rejects ?? []) rejects.push(reject);
    bytes += batch.bytes;
    const enough = bytes >= (packed.length > 0 ? JOIN_PACKED_BYTES : JOIN_BYTES) || rows.length >= JOIN_ROWS;
    if (batch.state || enough || performance.now() - since >= JOIN_MS) yield take(batch.state);
  }
  if (rows.length > 0 || packed.length > 0 || rejects.length > 0) yield take();
}

/** The records of a batch, without its rejects. */
export function countOf(batch: Batch): number {
  return batch.rows.length + (batch.packed?.count ?? 0);
}

function inOne(packed: readonly PackedRows[]): PackedRows {
  return {
    tuples: packed.flatMap(({ tuples }) => tuples),
    count: packed.reduce((sum, { count }) => sum + count, 0),
    rows: () => packed.flatMap((one) => one.rows()),
    done: () => {
      for (const one of packed) one.done();
    },
  };
}

/** The same items; the next one is already being made while the caller works on this one. */
export async function* readAhead<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = items[Symbol.asyncIterator]();
  const pull = () => {
    const next = iterator.next();
    // Awaited later: until then a failure is nobody's.
    next.catch(() => {});
    return next;
  };
  let next = pull();
  try {
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      next = pull();
      yield value;
    }
  } finally {
    iterator.return?.().catch?.(() => {});
  }
}
