// A daemon of one test file in this process: its own root, user state and clock; and a client that speaks JSON.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type App, type AppConfig, createApp } from "#daemon/app.ts";
import { type Clock, systemClock } from "#shared/clock.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: documents of many shapes, checked by the tests
  readonly body: any;
  readonly text: string;
}

export interface Call {
  readonly token?: string | null;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
}

export interface TestDaemon {
  readonly root: string;
  readonly home: string;
  app: App;
  url: string;
  call(method: string, path: string, options?: Call): Promise<Answer>;
  /** Stops it and starts another over the same state. */
  restart(more?: Partial<AppConfig>): Promise<void>;
  close(): Promise<void>;
}

/** A clock that a test moves by hand. */
export class HandClock implements Clock {
  #ms = Date.parse("2026-11-21T12:00:00.000Z");
  now = (): number => this.#ms;
  monotonic = (): number => this.#ms;
  advance(ms: number): void {
    this.#ms += ms;
  }
}

export async function startDaemon(config: Partial<AppConfig> = {}): Promise<TestDaemon> {
  const folder = mkdtempSync(join(tmpdir(), "magic-identity-"));
  const root = join(folder, "root");
  const home = join(folder, "home");
  const settings: AppConfig = {
    root,
    logLevel: "error",
    clock: systemClock,
    ...config,
    env: { ...process.env, MAGIC_HOME: home, ...config.env },
  };
  const app = await createApp(settings);
  const daemon: TestDaemon = {
    root,
    home,
    app,
    url: await app.listen(),
    async call(method, path, { token = daemon.app.credentials.local_token, body, headers } = {}) {
      const answer = await fetch(daemon.url + path, {
        method,
        headers: {
          ...(token !== null && { authorization: `Bearer ${token}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      return { status: answer.status, headers: answer.headers, text, body: jsonOf(text) };
    },
    async restart(more = {}) {
      await daemon.app.close();
      daemon.app = await createApp({ ...settings, ...more });
      daemon.url = await daemon.app.listen();
    },
    async close() {
      await daemon.app.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return daemon;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
