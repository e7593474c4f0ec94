import type { Environment } from "#contract/protocol.ts";
import type { DeliveryStatus } from "#contract/states.ts";

export interface WebhookTable {
  readonly id: string;
  readonly environment: Environment;
  readonly url: string;
  /** JSON: event types. */
  readonly events: string;
  readonly status: "enabled" | "disabled";
  readonly description: string | null;
  /** Sealed JSON: signing secrets, each with the time at which it ends; empty when they were given up. */
  readonly secrets: string;
  /** When a delivery last succeeded. */
  readonly succeeded_at: string | null;
  readonly revision: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface WebhookRecord extends Omit<WebhookTable, "events"> {
  readonly events: readonly string[];
}

export interface Attempt {
  readonly at: string;
  readonly response_code: number | null;
  readonly duration_ms: number;
  readonly error: string | null;
}

export interface DeliveryTable {
  readonly id: string;
  readonly webhook_id: string;
  readonly environment: Environment;
  readonly event_id: string;
  readonly event_type: string;
  readonly status: DeliveryStatus;
  /** The body, byte for byte as it is sent, each time. */
  readonly payload: string;
  /** JSON: Attempt[]. */
  readonly attempts: string;
  /** How many attempts there had been when it was last put into the queue: a redelivery starts the schedule anew. */
  readonly attempts_before: number;
  readonly queued_at: string;
  readonly next_attempt_at: string | null;
  readonly created_at: string;
}

export interface DeliveryRecord extends Omit<DeliveryTable, "attempts"> {
  readonly attempts: readonly Attempt[];
}

export interface WebhookTables {
  readonly webhook: WebhookTable;
  readonly delivery: DeliveryTable;
}
