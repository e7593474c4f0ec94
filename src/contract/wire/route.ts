// POST /v1/route/explain: which model a request would go to, and why, without calling anyone.
import Type, { type Static } from "typebox";
import { Nullable } from "./times.ts";

const open = { additionalProperties: true } as const;

export const RouteExplainRequest = Type.Object(
  {
    model: Type.Optional(Nullable(Type.String({ maxLength: 512 }))),
    /** A chat completion request; only its size and features count. Its members may also stand beside `model`. */
    input: Type.Optional(Type.Object({}, open)),
  },
  { ...open, description: "A chat completion request, or `{model, input}`; nothing in it is sent anywhere." },
);

export type RouteExplainRequest = Static<typeof RouteExplainRequest>;

export const RouteCandidate = Type.Object({
  model: Type.String(),
  provider: Nullable(Type.String()),
  eligible: Type.Boolean(),
  rank: Nullable(Type.Integer({ description: "The order of attempts, from 1; null when it would not be tried." })),
  rule: Nullable(Type.String({ description: "The rule that keeps it out." })),
  reason: Nullable(Type.String({ description: "Why, and how to change it." })),
  estimated_cost_usd: Nullable(Type.Number({ description: "If the answer is as long as it may be." })),
  price: Nullable(Type.Object({ input: Type.Number(), output: Type.Number(), cache_read: Type.Number() })),
  context_length: Nullable(Type.Integer()),
  weight: Type.Number(),
  breaker: Type.Enum(["closed", "open", "half_open"]),
  latency_ms: Nullable(
    Type.Number({
      description: "Measured of late: to a stream's first content, or to a whole answer, as the request asks for.",
    }),
  ),
});
export type RouteCandidate = Static<typeof RouteCandidate>;

export const RouteExplanation = Type.Object({
  object: Type.Literal("route_explanation"),
  asked: Type.String({ description: "The model, alias or policy asked for, or the default." }),
  environment: Type.Enum(["sandbox", "live"]),
  policy: Nullable(Type.String()),
  strategy: Type.String(),
  decision: Nullable(
    Type.Object({ model: Type.String(), provider: Type.String(), estimated_cost_usd: Nullable(Type.Number()) }),
  ),
  prompt_tokens: Type.Integer({ description: "Estimated." }),
  max_tokens: Nullable(Type.Integer()),
  retries: Type.Integer(),
  timeout_ms: Type.Integer(),
  total_timeout_ms: Type.Integer(),
  candidates: Type.Array(RouteCandidate),
});
export type RouteExplanation = Static<typeof RouteExplanation>;
