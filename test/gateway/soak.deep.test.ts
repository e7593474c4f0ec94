// Half an hour at half of what the machine can do, with whole answers, streams, keys and callers who leave: no error, and a heap
// that does not grow. MAGIC_TEST_MINUTES makes it another time.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Agent, request } from "undici";
import { expect, test } from "vitest";
import { completion, stream } from "./pipeline.ts";
import { startUpstream } from "./upstream.ts";

const MINUTES = Number(process.env["MAGIC_TEST_MINUTES"] ?? 30);
const MB = 1024 * 1024;

async function told<T>(child: ChildProcess, ask?: string): Promise<T> {
  const answer = once(child, "message");
  if (ask !== undefined) child.send(ask);
  return (await answer)[0] as T;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}

test(`${MINUTES} minutes at half capacity: no error, a flat heap, a ledger that knows every call`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "magic-soak-"));
  const upstream = await startUpstream();
  upstream.answer = (response, _request, body) => {
    // What was asked is not kept: this process is not the one that is measured, but it must last as well.
    upstream.requests.length = 0;
    const streamed = body.includes('"stream":true');
    response.writeHead(200, { "content-type": streamed ? "text/event-stream" : "application/json" });
    setTimeout(() => response.end(streamed ? stream(10, 5) : completion(10, 5)), 5);
  };
  const limits = { requests_per_minute: 10_000_000, tokens_per_minute: 1_000_000_000, concurrent: 1_000 };
  const gateway = {
    providers: { openai: { api_key: "k", base_url: `${upstream.url}/v1` } },
    limits,
    budgets: [{ scope: "user", usd: 1_000_000, per: "month" }],
  };
  writeFileSync(
    join(folder, "magic.yaml"),
    JSON.stringify({ version: 1, gateway, egress: { allow_private: [new URL(upstream.url).host] } }),
  );
  const child = spawn(process.execPath, ["--expose-gc", join(import.meta.dirname, "soak-daemon.ts"), folder], {
    env: { ...process.env, MAGIC_HOME: join(folder, "home") },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const dispatcher = new Agent({ connections: 64 });
  try {
    const { url, token, local } = await told<{ url: string; token: string; local: string }>(child);
    const errors: string[] = [];
    let sent = 0;
    let answered = 0;

    const call = async (): Promise<void> => {
      const number = sent++;
      const left = number % 20 === 0 ? new AbortController() : null;
      const streamed = number % 5 === 1;
      try {
        const answer = await request(`${url}/v1/chat/completions`, {
          dispatcher,
          method: "POST",
          headers: {
            authorization: `Bearer ${token}`,
            "content-type": "application/json",
            ...(number % 20 === 7 && { "idempotency-key": `soak-${number}` }),
          },
          body: JSON.stringify({
            model: "openai/gpt-4o-mini",
            messages: [{ role: "user", content: `question ${number}` }],
            max_tokens: 10,
            user: `user-${number % 500}`,
            ...(streamed && { stream: true }),
          }),
          ...(left && { signal: left.signal }),
        });
        if (left) {
          left.abort();
          await answer.body.text().catch(() => undefined);
          return;
        }
        const text = await answer.body.text();
        if (answer.statusCode !== 200) errors.push(`${answer.statusCode} ${text.slice(0, 200)}`);
        else if (streamed ? !text.endsWith("data: [DONE]\n\n") : !text.includes('"cost_usd"'))
          errors.push(text.slice(-200));
        else answered++;
      } catch (error) {
        if (!left) errors.push(String(error));
      }
    };

    const capacityUntil = Date.now() + 5_000;
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        while (Date.now() < capacityUntil) await call();
      }),
    );
    const perSecond = Math.max(5, sent / 5 / 2);

    const heaps: number[] = [];
    const started = Date.now();
    const duration = MINUTES * 60_000;
    const under = new Set<Promise<void>>();
    for (let due = 0, sampled = 0; Date.now() - started < duration; ) {
      const elapsed = Date.now() - started;
      for (; due < (elapsed / 1000) * perSecond; due++) {
        const running = call().finally(() => under.delete(running));
        under.add(running);
      }
      if (elapsed >= sampled * (duration / 30)) {
        sampled++;
        heaps.push((await told<{ heap: number }>(child, "heap")).heap);
      }
      await delay(20);
    }
    await Promise.all(under);

    expect(errors.slice(0, 5)).toEqual([]);
    const early = median(heaps.slice(10, 20));
    const late = median(heaps.slice(-10));
    // biome-ignore lint/suspicious/noConsole: the figures are what a half-hour's run is for
    console.log(
      `soak: ${sent} calls, ${perSecond.toFixed(0)} a second, heap ${(early / MB).toFixed(1)} MB, then ${(late / MB).toFixed(1)} MB`,
    );
    expect(late).toBeLessThan(early * 1.1 + 4 * MB);
    const { body } = await request(`${url}/v1/usage?by=model`, { headers: { authorization: `Bearer ${local}` } });
    const { data } = (await body.json()) as { data: { requests: number; prompt_tokens: number }[] };
    expect(data[0]?.requests).toBeGreaterThanOrEqual(answered);
    expect(data[0]?.requests).toBeLessThanOrEqual(sent);
  } finally {
    child.send("stop");
    await once(child, "exit");
    await dispatcher.close();
    await upstream.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
