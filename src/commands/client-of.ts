// The clients of a command: the daemon that its options name, and this machine's own where only that will do.
import { type ConnectOptions, connect } from "#client/daemon/connect.ts";
import { connectGateway } from "#client/gateway/connect.ts";
import type { ApiClient } from "#client/http.ts";
import type { Context } from "./command.ts";

export type Needed = Pick<Context<unknown>, "globals" | "env" | "output">;

/** The daemon that --url, MAGIC_URL or the root names; started when it is this machine's and does not run. */
export function clientOf(needed: Needed, more: ConnectOptions = {}): Promise<ApiClient> {
  return connect({ ...named(needed), ...more });
}

/** That daemon for the gateway's own routes. */
export function gatewayClientOf(needed: Needed): Promise<ApiClient> {
  return connectGateway(named(needed));
}

/** This root's own daemon, whatever --url names: it reads folders of this machine. */
export function localClientOf(needed: Needed): Promise<ApiClient> {
  const { MAGIC_URL: _url, MAGIC_API_KEY: _key, ...env } = needed.env;
  return connect({ ...named(needed), url: undefined, env });
}

function named({ globals, env, output }: Needed): ConnectOptions {
  return { root: globals.root, url: globals.url, live: globals.live, env, note: output.note };
}

/** What a command must say besides, to be about what this client sees: each environment has its own. */
export function inEnvironment({ environment }: ApiClient): string {
  return environment === "live" ? " --live" : "";
}
