// A list's query as storage reads it, and its answer.
import { MagicError } from "#contract/errors.ts";
import type { ListPage } from "#contract/wire/list.ts";
import type { Page, Slice } from "#daemon/storage/page.ts";

export interface ListOptions {
  readonly limit?: number | undefined;
  readonly starting_after?: string | undefined;
  readonly ending_before?: string | undefined;
}

const cursor = /^[a-z]{2,8}_[0-9a-z]{1,40}$/;

/** @throws MagicError `validation_failed` for a cursor that is none, or both directions at once. */
export function pageOf({ limit = 20, starting_after: after, ending_before: before }: ListOptions): Page {
  const problems = Object.entries({ starting_after: after, ending_before: before })
    .filter(([, value]) => value !== undefined && !cursor.test(value))
    .map(([name]) => ({ pointer: `/${name}`, code: "format", detail: "is not an id" }));
  if (after !== undefined && before !== undefined)
    problems.push({ pointer: "/ending_before", code: "conflict", detail: "cannot stand beside starting_after" });
  if (problems.length > 0) throw new MagicError("validation_failed", undefined, { problems });
  return { limit, after, before };
}

export function answerPage<R, T extends { readonly id: string }>(
  { rows, more }: Slice<R>,
  { before }: Pick<Page, "before">,
  document: (row: R) => T,
): ListPage<T> {
  const data = rows.map(document);
  // The way on is where the reading came from: older ones behind the last, newer ones ahead of the first.
  const edge = before === undefined ? data.at(-1) : data[0];
  return { object: "list", data, has_more: more, next_cursor: more && edge ? edge.id : null };
}
