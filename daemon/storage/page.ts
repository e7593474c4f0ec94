// Pages of a list, newest first, by id: ids sort by the time they were made, so a cursor needs no row behind it.

export interface Page {
  readonly limit: number;
  /** Ids older than this one. */
  readonly after?: string | undefined;
  /** Ids newer than this one. */
  readonly before?: string | undefined;
}

export interface Slice<T> {
  readonly rows: readonly T[];
  /** True when there are more in the direction that was read. */
  readonly more: boolean;
}

interface Ordered<Q> {
  where(column: "id", operator: "<" | ">", value: string): Q;
  orderBy(column: "id", direction: "asc" | "desc"): Q;
  limit(limit: number): Q;
}

/** Adds the page to a query over a table with `id`: one row more than asked for tells whether there are more. */
export function paged<Q extends Ordered<Q>>(query: Q, { limit, after, before }: Page): Q {
  let bounded = query;
  if (after !== undefined) bounded = bounded.where("id", "<", after);
  if (before !== undefined) bounded = bounded.where("id", ">", before);
  return bounded.orderBy("id", before === undefined ? "desc" : "asc").limit(limit + 1);
}

export function slice<R, T>(rows: readonly R[], { limit, before }: Page, read: (row: R) => T): Slice<T> {
  const kept = rows.slice(0, limit).map(read);
  return { rows: before === undefined ? kept : kept.reverse(), more: rows.length > limit };
}
