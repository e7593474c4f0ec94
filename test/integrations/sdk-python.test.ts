// The Python SDK's own test-suite against a running daemon.
import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon } from "./daemon.ts";
import { startReceiver, writeProject } from "./receiver.ts";

const probe = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]);
const missing = probe.status !== 0;
if (missing) process.stderr.write("skipped: no Python 3.9 or newer for the Python SDK's tests\n");

test.skipIf(missing)("the Python SDK's test-suite passes", async () => {
  const receiver = await startReceiver();
  const root = temporaryFolder();
  writeProject(root, { egress: { allow_private: [receiver.address] } });
  const daemon = await startDaemon({ root });
  const { body: key } = await daemon.call("POST", "/v1/keys", {
    ...{
      name: "sdk",
      environment: "live",
      tier: "enterprise",
      scopes: ["connections:write", "webhooks:read", "webhooks:write"],
    },
  });
  const child = spawn(
    "python3",
    ["-B", fileURLToPath(new URL("../../sdk/python/tests/test_client.py", import.meta.url))],
    {
      env: {
        ...process.env,
        MAGIC_URL: daemon.app.url,
        MAGIC_API_KEY: daemon.app.credentials.api_key,
        MAGIC_LIVE_KEY: key.secret,
        RECEIVER_URL: receiver.url,
      },
    },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect(code, output).toBe(0);
  expect(output).toMatch(/Ran \d+ tests[\s\S]*OK/);
});
