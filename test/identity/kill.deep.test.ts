// kill -9 at random moments of writes: whatever was acknowledged is there, with its audit entry, in a chain that is whole; a key
// that was sent again took effect once or says that it does not know.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "#test/temporary.ts";
import { seeded } from "./random.ts";

const KILLS = 200;

interface Daemon {
  readonly url: string;
  readonly local_token: string;
  readonly child: ChildProcess;
}

function start(root: string, home: string): Promise<Daemon> {
  const child = spawn(process.execPath, ["bin/magic.js", "daemon", "start", "--foreground", "--port", "0", "--json"], {
    env: { ...process.env, MAGIC_HOME: home, MAGIC_ROOT: root },
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
      try {
        const { url, local_token } = JSON.parse(text) as { url: string; local_token: string };
        resolve({ url, local_token, child });
      } catch {
        // Not whole yet.
      }
    });
    child.once("exit", (code) => reject(new Error(`the daemon ended with ${code}: ${text}`)));
  });
}

test(`${KILLS} kills at random moments of writes: 0 acknowledged writes lost`, async () => {
  const folder = temporaryFolder();
  const [root, home] = [join(folder, "root"), join(folder, "home")];
  mkdirSync(root);
  const random = seeded(1);
  let last: ChildProcess | undefined;
  onTestFinished(() => {
    if (last?.pid && last.exitCode === null && last.signalCode === null) process.kill(-last.pid, "SIGKILL");
  });
  const acknowledged = new Map<string, string>();
  const unanswered: { key: string; name: string }[] = [];
  let count = 0;
  for (let round = 0; round <= KILLS; round++) {
    const daemon = await start(root, home);
    last = daemon.child;
    const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
      fetch(daemon.url + path, {
        method,
        headers: { authorization: `Bearer ${daemon.local_token}`, "content-type": "application/json", ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    // Everything that was acknowledged before is there, and so is its entry.
    for (const [id, request] of [...acknowledged].slice(-30)) {
      expect((await call("GET", `/v1/keys/${id}`)).status).toBe(200);
      const { data } = (await (await call("GET", `/v1/audit?request_id=${request}`)).json()) as { data: unknown[] };
      expect(data, request).toHaveLength(1);
    }
    for (const { key, name } of unanswered.splice(0)) {
      const again = await call("POST", "/v1/keys", { name, scopes: ["keys:read"] }, { "idempotency-key": key });
      expect([201, 409]).toContain(again.status);
      const { code } = (await again.json()) as { code?: string };
      if (again.status === 409) expect(code).toBe("idempotency_outcome_unknown");
    }
    const proof = (await (await call("GET", "/v1/audit/verification")).json()) as { valid: boolean };
    expect(proof).toMatchObject({ valid: true, problems: [] });
    let killed = false;
    const writers = Array.from({ length: 6 }, async () => {
      while (!killed) {
        const name = `key ${count++}`;
        try {
          const answer = await call(
            "POST",
            "/v1/keys",
            { name, scopes: ["keys:read"] },
            { "idempotency-key": name.replace(" ", "-") },
          );
          const { id } = (await answer.json()) as { id: string };
          acknowledged.set(id, String(answer.headers.get("x-request-id")));
        } catch {
          unanswered.push({ key: name.replace(" ", "-"), name });
        }
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 5 + random.below(250)));
    // The whole group: the command in the foreground and the daemon that is its child.
    if (daemon.child.pid) process.kill(-daemon.child.pid, "SIGKILL");
    killed = true;
    await Promise.all(writers);
  }
  expect(acknowledged.size).toBeGreaterThan(KILLS);
});
