// What no error may tell of a sync's end.
import type { SyncEnd } from "#contract/sync.ts";
import { secretsIn } from "#shared/redact.ts";
import { readServerUrl } from "./server-url.ts";

/** Its credentials, what is secret of its connector's settings, and its URL's password. */
export function secretsOf({ url, credentials = {}, connector }: SyncEnd): string[] {
  const server = readServerUrl(url);
  const password = server ? decodeURIComponent(server.password) : "";
  const settings = [...secretsIn(connector?.config), ...(connector?.secrets ?? [])];
  return [...Object.values(credentials), ...settings, password].filter((secret) => secret !== "");
}
