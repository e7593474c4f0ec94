// Members that many documents share.
import { type TSchema, Type } from "typebox";

export const Timestamp = (description: string) =>
  Type.String({ format: "date-time", description, examples: ["2026-11-21T09:30:00.000Z"] });

export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
