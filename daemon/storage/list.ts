// A list's query as storage reads it, and its answer.
import { MagicError } from "#contract/errors.ts";
import type { ListPage } from "#contract/wire/list.ts";
import type { Page, Slice } from "./page.ts";

export interface ListOptions {
  readonly limit?: number | undefined;
  readonly starting_after?: string | undefined;
  readonly ending_before?: string | undefined;
}

/** What an id has behind its prefix. */
const REST = /^_[0-9a-z]{1,40}$/;

/**
 * @param prefix of the list's ids: another noun's would be compared with them letter by letter.
 * @throws MagicError `validation_failed` for a cursor that is none, or both directions at once.
 */
export function pageOf(
  prefix: string,
  { limit = 20, starting_after: after, ending_before: before }: ListOptions,
): Page {
  const isCursor = (text: string): boolean => text.startsWith(prefix) && REST.test(text.slice(prefix.length));
  const problems = Object.entries({ starting_after: after, ending_before: before })
    .filter(([, value]) => value !== undefined && !isCursor(value))
    .map(([name]) => ({ pointer: `/${name}`, code: "format", detail: `is not an id of this list (${prefix}_...)` }));
  if (problems.length > 0) throw new MagicError("validation_failed", undefined, { problems });
  oneDirection({ starting_after: after, ending_before: before });
  return { limit, after, before };
}

/** @throws MagicError `validation_failed` for both directions at once. */
function oneDirection({ starting_after: after, ending_before: before }: ListOptions): void {
  if (after === undefined || before === undefined) return;
  const detail = "cannot stand beside starting_after";
  throw new MagicError("validation_failed", undefined, {
    problems: [{ pointer: "/ending_before", code: "conflict", detail }],
  });
}

/** A page of what is in memory, in its own order; `cursorOf` names an item's place. A cursor that is not there begins at the front. */
export function pageInMemory<T>(all: readonly T[], options: ListOptions, cursorOf: (item: T) => string): ListPage<T> {
  const { starting_after: after, ending_before: before } = options;
  const from = after === undefined ? 0 : all.findIndex((item) => cursorOf(item) === after) + 1;
  const end = before === undefined ? -1 : all.findIndex((item) => cursorOf(item) === before);
  return pageOfRest(all.slice(from, end === -1 ? undefined : end), options, cursorOf);
}

/** The same of what stands in the order of its names: one that is gone is still a place. */
export function pageByName<T>(all: readonly T[], options: ListOptions, nameOf: (item: T) => string): ListPage<T> {
  const { starting_after: after, ending_before: before } = options;
  const within = (name: string) => (after === undefined || name > after) && (before === undefined || name < before);
  return pageOfRest(
    all.filter((item) => within(nameOf(item))),
    options,
    nameOf,
  );
}

function pageOfRest<T>(rest: readonly T[], options: ListOptions, cursorOf: (item: T) => string): ListPage<T> {
  oneDirection(options);
  const { limit = rest.length } = options;
  const backwards = options.ending_before !== undefined;
  const data = backwards ? rest.slice(Math.max(0, rest.length - limit)) : rest.slice(0, limit);
  const edge = backwards ? data[0] : data.at(-1);
  const more = rest.length > data.length;
  return { object: "list", data, has_more: more, next_cursor: more && edge !== undefined ? cursorOf(edge) : null };
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
