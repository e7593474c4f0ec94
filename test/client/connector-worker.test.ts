import { expect, test } from "vitest";
import { runConnectorWorker } from "#client/connectors/worker.ts";

test("whoever left before the process was started starts none", async () => {
  const left = { signal: AbortSignal.abort(), onReply() {} };
  const job = { type: "probe", manifest: "{}", config: {} } as const;
  await expect(runConnectorWorker(job, left)).rejects.toMatchObject({ code: "interrupted" });
});
