// How a call ended, in the audit log's words.

/** refused: 401, 403 and 429; failed: every other error. */
export const outcomes = ["success", "refused", "failed"] as const;
export type Outcome = (typeof outcomes)[number];
