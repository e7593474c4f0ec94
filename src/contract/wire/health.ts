import { type Static, Type } from "typebox";

/** GET /v1/health: whether the daemon is ready, and which of its parts is not. */
export const Health = Type.Object(
  {
    status: Type.Union([Type.Literal("ok"), Type.Literal("unavailable")]),
    version: Type.String(),
    api_version: Type.String(),
    environment: Type.Union([Type.Literal("development"), Type.Literal("production")]),
    uptime_s: Type.Integer(),
    checks: Type.Record(Type.String(), Type.String()),
  },
  { $id: "Health" },
);
export type Health = Static<typeof Health>;
