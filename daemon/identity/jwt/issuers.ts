// The issuers of this account's access tokens. By default that is the daemon's origin, whose port may differ after a restart, and other
// daemons over the same database have others: tokens of all of them are good until they expire, so they are remembered.
import type { Storage } from "#daemon/storage/storage.ts";

export interface Issuers {
  /** What new tokens name. */
  readonly current: () => string;
  readonly knows: (issuer: string) => Promise<boolean>;
  /** Told when the daemon listens. */
  listening(origin: string): Promise<void>;
}

const KEY = "identity.issuers";
const KEEP = 50;

export async function openIssuers({ units }: Storage, configured: () => string | null): Promise<Issuers> {
  const read = async () => JSON.parse((await units.setting.get({ key: KEY })) ?? "[]") as string[];
  let known = await read();
  let origin = known.at(-1) ?? "http://127.0.0.1";
  return {
    current: () => configured() ?? origin,
    async knows(issuer) {
      if (issuer === configured() || known.includes(issuer)) return true;
      // Another daemon may have come since. Only what our own keys have signed leads here.
      known = await read();
      return known.includes(issuer);
    },
    async listening(url) {
      origin = url;
      known = await units.setting.append({ key: KEY, value: url, keep: KEEP });
    },
  };
}
