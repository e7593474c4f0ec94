// Calls of many outcomes, a hundred at once, and what the audit log has of them.
import type { Verification } from "#daemon/identity/audit/verify.ts";
import type { TestDaemon } from "./daemon.ts";

export interface MixedOutcome {
  /** Request id to the status that was answered. */
  readonly sent: ReadonlyMap<string, number>;
  /** Request id to the status that the log has; "twice" for one that has two entries. */
  readonly recorded: ReadonlyMap<string, number | "twice">;
  readonly proof: Verification;
}

const ABREAST = 100;

export async function mixedCalls(daemon: TestDaemon, calls: number): Promise<MixedOutcome> {
  const { api_key } = daemon.app.credentials;
  const kinds: [string, string, string | null | undefined, unknown][] = [
    ["GET", "/v1/keys?limit=1", undefined, undefined],
    ["GET", "/v1/keys", api_key, undefined],
    ["GET", "/v1/clients/none", undefined, undefined],
    ["GET", "/v1/health", null, undefined],
    ["POST", "/v1/keys", undefined, { scopes: [] }],
    ["GET", "/v1/keys", "wrong", undefined],
    ["POST", "/v1/keys", undefined, { scopes: ["keys:read"] }],
    ["PUT", "/v1/keys", undefined, undefined],
    ["GET", "/v1/connections", api_key, undefined],
  ];
  const sent = new Map<string, number>();
  const call = async (index: number) => {
    const id = `mixed-${index}`;
    const [method, path, token, body] = kinds[index % kinds.length] as (typeof kinds)[number];
    const answer = await daemon.call(method, path, {
      ...(token !== undefined && { token }),
      body,
      headers: { "x-request-id": id },
    });
    sent.set(id, answer.status);
  };
  for (let start = 0; start < calls; start += ABREAST)
    await Promise.all(Array.from({ length: Math.min(ABREAST, calls - start) }, (_, index) => call(start + index)));
  const proof = await daemon.app.identity.audit.verify();
  return { sent, recorded: await entries(daemon), proof };
}

async function entries(daemon: TestDaemon): Promise<Map<string, number | "twice">> {
  const found = new Map<string, number | "twice">();
  const units = daemon.app.storage.units.audit;
  for (let after: number | null = null; ; ) {
    const page: Awaited<ReturnType<typeof units.page>> = await units.page({ after, limit: 1_000 });
    for (const { request_id, status } of page)
      if (request_id.startsWith("mixed-")) found.set(request_id, found.has(request_id) ? "twice" : status);
    const last = page.at(-1);
    if (!last) return found;
    after = last.sequence;
  }
}
