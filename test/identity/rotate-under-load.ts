// Callers that never pause, with a key that is rolled again and again: what they were refused, and what they should have been.
import type { TestDaemon } from "./daemon.ts";

export interface RotationOutcome {
  readonly rotations: number;
  readonly calls: number;
  /** Refusals of a secret that was good when the call began and when it ended. */
  readonly spurious: number;
  /** Acceptances of a secret that had ended a second ago. */
  readonly zombies: number;
}

export async function rotateUnderLoad(
  daemon: TestDaemon,
  { rotations, callers }: { rotations: number; callers: number },
): Promise<RotationOutcome> {
  const made = await daemon.call("POST", "/v1/keys", {
    body: { scopes: ["keys:read"], environment: "live", tier: "enterprise" },
  });
  const { id } = made.body as { id: string };
  const probe = async (token: string) => (await daemon.call("GET", "/v1/keys?limit=1", { token })).status;
  let current: string = made.body.secret;
  let running = true;
  const count = { calls: 0, spurious: 0, zombies: 0 };
  const load = Array.from({ length: callers }, async () => {
    while (running) {
      // Taken before the call: in its overlap of an hour it stays good whatever happens meanwhile.
      const status = await probe(current);
      count.calls++;
      if (status !== 200) count.spurious++;
    }
  });
  const ended: { secret: string; at: number }[] = [];
  for (let index = 0; index < rotations; index++) {
    // Now and then the overlap is over at once: those who use the old secret must have let go of it first.
    const rolled = await daemon.call("POST", `/v1/keys/${id}/roll`, { body: { overlap_s: 3600 } });
    if (rolled.status !== 200) throw new Error(`a roll answered ${rolled.status}`);
    const old = current;
    current = rolled.body.secret;
    if (index % 25 === 0) ended.push({ secret: old, at: Date.now() });
  }
  running = false;
  await Promise.all(load);
  // The last roll ends every secret before it.
  const last = await daemon.call("POST", `/v1/keys/${id}/roll`, { body: { overlap_s: 0 } });
  if (last.status !== 200) throw new Error(`a roll answered ${last.status}`);
  for (const { secret } of ended) if ((await probe(secret)) === 200) count.zombies++;
  if ((await probe(last.body.secret)) !== 200) count.spurious++;
  return { rotations, ...count };
}
