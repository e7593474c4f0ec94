// The state machines of connections, syncs, runs and deliveries. Storage enforces them, docs/states.md draws them.

export const connectionStates = {
  // Made, not yet tested; the sandbox goes straight to connected.
  pending: ["connected", "degraded", "failed", "disabled"],
  connected: ["degraded", "failed", "disabled", "pending"],
  // It answers, but slowly or in part.
  degraded: ["connected", "failed", "disabled", "pending"],
  failed: ["connected", "degraded", "disabled", "pending"],
  // The provider withdrew its authorization: it must be authorized anew.
  disabled: ["pending", "connected", "failed"],
} as const;

export const syncStates = {
  active: ["running", "paused"],
  running: ["active", "failed", "paused"],
  paused: ["active"],
  // Its last run failed. The next run, or a resume, makes it active again.
  failed: ["running", "active", "paused"],
} as const;

export const runStates = {
  queued: ["running", "completed", "failed", "canceled"],
  running: ["completed", "failed", "canceled"],
  completed: [],
  failed: [],
  canceled: [],
} as const;

export const deliveryStates = {
  pending: ["succeeded", "failed"],
  succeeded: ["pending"],
  failed: ["pending"],
} as const;

export type ConnectionStatus = keyof typeof connectionStates;
export type SyncStatus = keyof typeof syncStates;
export type RunStatus = keyof typeof runStates;
export type DeliveryStatus = keyof typeof deliveryStates;

/** Whether `machine` allows the step; staying where it is always is. */
export function mayMove<S extends string>(machine: Readonly<Record<S, readonly string[]>>, from: S, to: S): boolean {
  return from === to || machine[from].includes(to);
}
