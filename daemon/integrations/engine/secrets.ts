// What no error may tell of a sync's end.
import type { SyncEnd } from "#contract/sync.ts";
import { secretsIn } from "#shared/redact.ts";
import { readServerUrl } from "./server-url.ts";

/** Its credentials, what its connector's settings call a secret, and its URL's password. */
export function secretsOf({ url, credentials = {}, connector }: SyncEnd): string[] {
  const server = readServerUrl(url);
  const password = server ? decodeURIComponent(server.password) : "";
  return [...Object.values(credentials), ...secretsIn(connector?.config), password].filter((secret) => secret !== "");
}
