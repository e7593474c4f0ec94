// A daemon in this process, with requests as one of its callers.
import { onTestFinished } from "vitest";
import type { Environment } from "#contract/protocol.ts";
import { type App, type AppConfig, createApp } from "#daemon/app.ts";
import { temporaryFolder } from "#test/temporary.ts";

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: documents of every kind, looked into by tests
  readonly body: any;
  readonly headers: Readonly<Record<string, unknown>>;
}

export interface TestDaemon {
  readonly app: App;
  readonly root: string;
  readonly home: string;
  /** As the command line's own token, which no limit counts. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
  close(): Promise<void>;
}

export interface CallOptions {
  readonly live?: boolean;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function startDaemon(config: Partial<AppConfig> = {}): Promise<TestDaemon> {
  const root = config.root ?? temporaryFolder();
  const home = config.env?.["MAGIC_HOME"] ?? temporaryFolder();
  const app = await createApp({ logLevel: "error", ...config, root, env: { MAGIC_HOME: home, ...config.env } });
  await app.listen();
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= app.close();
    return closed;
  };
  onTestFinished(close);
  return {
    app,
    root,
    home,
    close,
    async call(method, path, body, { live = false, token, headers = {} } = {}) {
      const environment: Environment = live ? "live" : "sandbox";
      const answer = await fetch(new URL(path, app.url), {
        method,
        headers: {
          authorization: `Bearer ${token ?? app.credentials.local_token}`,
          "magic-environment": environment,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      return {
        status: answer.status,
        body: text === "" ? undefined : JSON.parse(text),
        headers: Object.fromEntries(answer.headers),
      };
    },
  };
}
