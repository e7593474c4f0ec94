// One candidate of a route: where it goes, what it costs, and what the route holds against it.
import type { ConfiguredProvider } from "#daemon/gateway/engagement/engagement.ts";
import type { Price } from "#daemon/gateway/pricing/price.ts";
import type { Provider, Target } from "#daemon/gateway/providers/adapter.ts";

/** Why a candidate is out; the first one that applies. */
export type Objection =
  | "environment"
  | "engagement.deny"
  | "engagement.allow"
  | "token.models"
  | "controller.models"
  | "not_configured"
  | "unknown_model"
  | "unsupported"
  | "invalid"
  | "context_length"
  | "unpriced"
  | "budget";

export interface Candidate {
  /** `provider/model`. */
  readonly name: string;
  readonly configured: ConfiguredProvider;
  readonly provider: Provider;
  readonly target: Target;
  readonly weight: number;
  /** Null only where `allow_unpriced` is set. */
  readonly price: Price | null;
  readonly contextLength: number | null;
  /** Pico-dollars if the answer is as long as it may be; null when unpriced. */
  readonly worst: number | null;
}

/** What became of a candidate of the policy, or of the model that was asked for. */
export interface Considered {
  readonly model: string;
  readonly objection: Objection | null;
  readonly reason: string | null;
  readonly param: string | null;
  readonly candidate: Candidate | null;
}
