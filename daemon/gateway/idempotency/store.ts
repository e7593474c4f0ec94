// What an Idempotency-Key keeps beyond a restart, as an interface: daemon/storage/repositories/gateway-key.ts satisfies it.

export interface KeyRow {
  /** Who: one credential in one environment. */
  readonly owner: string;
  readonly key: string;
  /** HMAC of the request's SHA-256, hex. */
  readonly fingerprint: string;
  readonly request_id: string;
  /** `open`: dispatched, or about to be. `done`: `answer` holds the sealed answer. */
  readonly state: "open" | "done";
  readonly answer: string | null;
  /** Another daemon on the same state is at work on it. */
  readonly alive: boolean;
}

export interface KeyStore {
  /** Takes the key durably, or tells who has it. An expired row is replaced. */
  begin(row: {
    readonly owner: string;
    readonly key: string;
    readonly fingerprint: string;
    readonly request_id: string;
    readonly now: string;
    readonly expires_at: string;
  }): Promise<KeyRow | null>;
  /** Durable when it resolves. */
  finish(row: { readonly owner: string; readonly key: string; readonly answer: string }): Promise<void>;
  /** Gives an open key of this process back: nothing was dispatched. */
  release(row: { readonly owner: string; readonly key: string }): Promise<void>;
  /** Leaves an open key of this process to nobody: what became of its call is not known. */
  abandon(row: { readonly owner: string; readonly key: string }): Promise<void>;
  /** Forgets what has expired, at most `limit`; returns how many rows that were. */
  purge(row: { readonly now: string; readonly limit: number }): Promise<number>;
}
