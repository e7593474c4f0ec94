import { type Static, Type } from "typebox";

/** Query of GET /v1/logs and of the stream at /v1/logs/stream. */
export const LogQuery = Type.Object(
  {
    since: Type.Optional(
      Type.String({ description: "RFC 3339 time, or a span before now such as 30s, 10m, 2h, 7d", maxLength: 64 }),
    ),
    after: Type.Optional(Type.String({ description: "the cursor of the last line seen", pattern: "^[0-9a-z]{26}$" })),
    controller: Type.Optional(Type.String({ maxLength: 128 })),
    request: Type.Optional(Type.String({ maxLength: 128 })),
    level: Type.Optional(
      Type.Union([Type.Literal("debug"), Type.Literal("info"), Type.Literal("warn"), Type.Literal("error")]),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, default: 1_000 })),
  },
  { additionalProperties: false },
);
export type LogQuery = Static<typeof LogQuery>;

/** One line of the log: these members, and whatever belongs to its event. */
export const LogEntry = Type.Object(
  { cursor: Type.String(), time: Type.String(), level: Type.String(), event: Type.String() },
  { additionalProperties: true, $id: "LogEntry" },
);
export type LogEntry = Static<typeof LogEntry> & Record<string, unknown>;

export const LogList = Type.Object(
  {
    object: Type.Literal("list"),
    data: Type.Array(LogEntry),
    has_more: Type.Boolean(),
    next_cursor: Type.Union([Type.String(), Type.Null()]),
  },
  { $id: "LogList" },
);

/** A frame of the stream at /v1/logs/stream (text, JSON). `live` comes once: what follows is new. */
export type LogFrame =
  | { readonly type: "line"; readonly line: LogEntry }
  | { readonly type: "live" }
  | { readonly type: "missed"; readonly lines: number };
