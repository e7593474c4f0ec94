// Path parameters, and the answer to a deletion.
import { type Static, Type } from "typebox";

export const IdParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 200 }) });
export type IdParams = Static<typeof IdParams>;

export const Deleted = Type.Object(
  { id: Type.String(), object: Type.String(), deleted: Type.Literal(true) },
  { $id: "Deleted" },
);
