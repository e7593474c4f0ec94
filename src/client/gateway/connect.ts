// A client for the gateway's own routes. Without --live or a key of one's own it holds the local gateway token, which works for live
// and sandbox models alike.
import { type ConnectOptions, connect, findDaemon } from "#client/daemon/connect.ts";
import { type ApiClient, createApiClient } from "#client/http.ts";
import { findRoot } from "#shared/paths.ts";

export async function connectGateway(options: ConnectOptions): Promise<ApiClient> {
  const env = options.env ?? process.env;
  const client = await connect(options);
  if (options.live || options.url || env["MAGIC_URL"] || env["MAGIC_API_KEY"]) return client;
  const token = findDaemon(findRoot(options.root, env).path)?.gateway_token;
  return token ? createApiClient({ url: client.url, token, environment: client.environment }) : client;
}
