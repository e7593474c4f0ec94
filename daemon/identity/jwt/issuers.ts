// The issuers of this account's access tokens. By default that is the daemon's origin, whose port may differ after a restart:
// tokens of the origins before stay good until they expire, so they are remembered.
import type { Storage } from "#daemon/storage/storage.ts";

export interface Issuers {
  /** What new tokens name. */
  readonly current: () => string;
  readonly knows: (issuer: string) => boolean;
  /** Told when the daemon listens. */
  listening(origin: string): Promise<void>;
}

const KEY = "identity.issuers";
const KEEP = 50;

export async function openIssuers(storage: Storage, configured: () => string | null): Promise<Issuers> {
  const { setting } = storage.units;
  let known = JSON.parse((await setting.get({ key: KEY })) ?? "[]") as string[];
  let origin = known.at(-1) ?? "http://127.0.0.1";
  return {
    current: () => configured() ?? origin,
    knows: (issuer) => issuer === configured() || known.includes(issuer),
    async listening(url) {
      origin = url;
      if (known.at(-1) === url) return;
      known = [...known.filter((one) => one !== url), url].slice(-KEEP);
      await setting.put({ key: KEY, value: JSON.stringify(known) });
    },
  };
}
