// Between reading and writing: small batches are joined, and one is read ahead while the last is being written.
import type { Batch, StreamState } from "./source.ts";
import type { Row } from "./types.ts";

const JOIN_BYTES = 1 << 20;
const JOIN_ROWS = 5_000;

/** Batches of a size worth a write; packed ones as they are. A batch with a state ends its group, so that a checkpoint can follow it. */
export async function* joined(batches: AsyncIterable<Batch>): AsyncGenerator<Batch> {
  let rows: Row[] = [];
  let places: number[] | null = null;
  let next = 0;
  let rejects: NonNullable<Batch["rejects"]>[number][] = [];
  let bytes = 0;
  const take = (state?: StreamState): Batch => {
    const batch = { rows, bytes, rejects, ...(places ? { places } : {}), ...(state ? { state } : {}) };
    rows = [];
    places = places ? [] : null;
    rejects = [];
    bytes = 0;
    return batch;
  };
  for await (const batch of batches) {
    if (batch.packed) {
      // The two kinds are written differently, and keep their order.
      if (rows.length > 0) yield take();
      next += batch.packed.count;
      yield batch;
      continue;
    }
    // Once records were left out, the numbers of the rows are told.
    if (batch.places && places === null) places = rows.map((_, at) => next - rows.length + at);
    if (places) for (let at = 0; at < batch.rows.length; at++) places.push(batch.places?.[at] ?? next + at);
    next = batch.places ? (batch.places.at(-1) ?? next - 1) + 1 : next + countOf(batch);
    if (rows.length === 0) rows = batch.rows as Row[];
    else for (const row of batch.rows) rows.push(row);
    if (batch.rejects) rejects.push(...batch.rejects);
    bytes += batch.bytes;
    if (batch.state || bytes >= JOIN_BYTES || rows.length >= JOIN_ROWS) yield take(batch.state);
  }
  if (rows.length > 0 || rejects.length > 0) yield take();
}

/** The records of a batch, without its rejects. */
export function countOf(batch: Batch): number {
  return batch.rows.length + (batch.packed?.count ?? 0);
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
