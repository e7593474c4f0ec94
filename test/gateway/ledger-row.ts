// A row of the ledger with everything that it needs, for tests that are about some of it.
import type { LedgerRow } from "#daemon/gateway/ledger/row.ts";

export function ledgerRow(more: Partial<LedgerRow> = {}): LedgerRow {
  return {
    at: "2026-03-01T10:00:00.000Z",
    request_id: "req_1",
    operation: "chat",
    environment: "live",
    token: null,
    user: null,
    team: null,
    project: null,
    controller: null,
    provider: "openai",
    model: "m",
    outcome: "completed",
    status: 200,
    stream: true,
    attempts: 1,
    requests: 1,
    input: 10,
    cached: 2,
    cache_write: 1,
    output: 5,
    reasoning: 3,
    estimated: false,
    cost_pico: 1_000,
    duration_ms: 5,
    first_token_ms: null,
    ...more,
  };
}
