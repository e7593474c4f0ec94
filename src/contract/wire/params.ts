// Path parameters, and the answer to a deletion.
import { type Static, Type } from "typebox";

/** Any text, none too: one that is no id names nothing, which is 404 and not a problem of form. */
export const IdParams = Type.Object({ id: Type.String() });
export type IdParams = Static<typeof IdParams>;

export const IdempotencyKeyHeader = Type.Object({
  "Idempotency-Key": Type.Optional(
    Type.String({
      pattern: "^[!-~]{1,255}$",
      description: "The same request sent again with the same key gets the first one's answer, for 24 hours.",
    }),
  ),
});

export const Deleted = Type.Object(
  { id: Type.String(), object: Type.String(), deleted: Type.Literal(true) },
  { $id: "Deleted" },
);
