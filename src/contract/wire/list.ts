// Lists: the same query and the same envelope everywhere.
import { type Static, type TObject, type TProperties, Type } from "typebox";

const cursor = (description: string) => Type.String({ minLength: 1, maxLength: 200, description });

/** The query of a list; filters come as further members. Others are refused: a filter with a slip would let everything through. */
export function listQuery<P extends TProperties>(filters: P) {
  return Type.Object(
    {
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 100, default: 20, description: "How many at most.", examples: [20] }),
      ),
      starting_after: Type.Optional(cursor("An id or `next_cursor`: the page behind it.")),
      ending_before: Type.Optional(cursor("An id: the page ahead of it.")),
      ...filters,
    },
    { additionalProperties: false },
  );
}

/** A page of a list, newest first. `next_cursor` is null at the end. */
export function listOf<T extends TObject>(item: T) {
  return Type.Object({
    object: Type.Literal("list"),
    data: Type.Array(item),
    has_more: Type.Boolean(),
    next_cursor: Type.Union([Type.String(), Type.Null()], {
      description: "For the parameter that asked for this page, `starting_after` at first; null at the end.",
    }),
  });
}

export type ListQuery = Static<ReturnType<typeof listQuery<Record<never, never>>>>;

export interface ListPage<T> {
  readonly object: "list";
  readonly data: readonly T[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}
