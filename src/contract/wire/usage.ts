// GET /v1/usage: what was used and what it cost, summed by one key.
import Type, { type Static } from "typebox";

export const usageKeys = ["user", "team", "project", "model", "provider", "day", "controller"] as const;

const Time = Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}", description: "A day, or a time in RFC 3339." });
/** A page; few have more users than that. */
export const MOST_ROWS = 10_000;
const Name = Type.String({ minLength: 1, maxLength: 512 });

export const UsageQuery = Type.Object(
  {
    by: Type.Optional(Type.Enum([...usageKeys], { description: "What to sum by; model by default." })),
    since: Type.Optional(Time),
    until: Type.Optional(Time),
    environment: Type.Optional(Type.Enum(["sandbox", "live"])),
    format: Type.Optional(Type.Enum(["json", "csv"])),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MOST_ROWS, default: MOST_ROWS, description: "How many at most." }),
    ),
    starting_after: Type.Optional(
      Type.String({ minLength: 1, maxLength: 4_000, description: "`next_cursor`: the page behind it." }),
    ),
    user: Type.Optional(Name),
    team: Type.Optional(Name),
    project: Type.Optional(Name),
    model: Type.Optional(Name),
    provider: Type.Optional(Name),
    controller: Type.Optional(Name),
  },
  { additionalProperties: false },
);
export type UsageQuery = Static<typeof UsageQuery>;

export const UsageRow = Type.Object({
  key: Type.Union([Type.String(), Type.Null()], { description: "Null: calls that name none." }),
  requests: Type.Integer(),
  prompt_tokens: Type.Integer(),
  completion_tokens: Type.Integer(),
  cost_usd: Type.Number(),
  cached_tokens: Type.Integer(),
  reasoning_tokens: Type.Integer(),
  unpriced_requests: Type.Integer({ description: "Calls of models without a price; their cost is in no sum." }),
});
export type UsageRow = Static<typeof UsageRow>;

export const UsageReport = Type.Object({
  object: Type.Literal("list"),
  by: Type.Enum([...usageKeys]),
  data: Type.Array(UsageRow, { description: "The dearest first; days in their order." }),
  has_more: Type.Boolean(),
  next_cursor: Type.Union([Type.String(), Type.Null()], { description: "For `starting_after`; null at the end." }),
});
export type UsageReport = Static<typeof UsageReport>;
