/** What became of requests with an Idempotency-Key. */
export interface IdempotencyTable {
  readonly id: string;
  /** Whose key it is: a credential and an environment, in words of the surface. */
  readonly owner: string;
  readonly key: string;
  readonly fingerprint: string;
  /** The process that works on it; another one finding it unfinished knows that its outcome is unknown. */
  readonly process: string;
  /** The sealed answer; null while the first request is under way. */
  readonly answer: string | null;
  readonly created_at: string;
  readonly expires_at: string;
}

export interface IdempotencyTables {
  readonly idempotency: IdempotencyTable;
}
