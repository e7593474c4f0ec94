// The clients of a command: the daemon that its options name, and this machine's own where only that will do.
import { connect } from "#client/daemon/connect.ts";
import type { ApiClient } from "#client/http.ts";
import type { Context } from "./command.ts";

type Needed = Pick<Context<unknown>, "globals" | "env" | "output">;

/** The daemon that --url, MAGIC_URL or the root names; started when it is this machine's and does not run. */
export function clientOf({ globals, env, output }: Needed): Promise<ApiClient> {
  return connect({ root: globals.root, url: globals.url, live: globals.live, env, note: output.note });
}

/** This root's own daemon, whatever --url names: it reads folders of this machine. */
export function localClientOf({ globals, env, output }: Needed): Promise<ApiClient> {
  const { MAGIC_URL: _url, MAGIC_API_KEY: _key, ...own } = env;
  return connect({ root: globals.root, live: globals.live, env: own, note: output.note });
}
