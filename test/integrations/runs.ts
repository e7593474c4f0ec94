// Runs of a daemon's live syncs, from their trigger to their end.
import { vi } from "vitest";
import type { TestDaemon } from "./daemon.ts";

export const live = { live: true };

/** The id of the run. */
export async function trigger(daemon: TestDaemon, sync: string, body: object = {}): Promise<string> {
  return (await daemon.call("POST", `/v1/syncs/${sync}/trigger`, body, live)).body.id;
}

/** The run, once it is over. */
export function ended(daemon: TestDaemon, run: string) {
  return vi.waitFor(
    async () => {
      const { body } = await daemon.call("GET", `/v1/runs/${run}`, undefined, live);
      if (body.status === "queued" || body.status === "running") throw new Error(`still ${JSON.stringify(body)}`);
      return body;
    },
    { timeout: 60_000, interval: 50 },
  );
}
