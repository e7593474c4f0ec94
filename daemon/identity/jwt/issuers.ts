// The issuers of this account's access tokens. By default that is the daemon's origin, whose port may differ after a restart, magic.yaml may
// name another at any time, and other daemons over the same database have others: tokens of all of them are good until they expire, so
// they are remembered.
import type { Storage } from "#daemon/storage/storage.ts";

export interface Issuers {
  /** The account's issuer now. */
  readonly current: () => string;
  /** The same, for a new token: it is remembered as long as tokens may name it. */
  issuing(): Promise<string>;
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
  const current = () => configured() ?? origin;
  const remember = async (value: string) => {
    known = await units.setting.append({ key: KEY, value, keep: KEEP });
  };
  return {
    current,
    async issuing() {
      const issuer = current();
      if (!known.includes(issuer)) await remember(issuer);
      return issuer;
    },
    async knows(issuer) {
      if (issuer === configured() || known.includes(issuer)) return true;
      // Another daemon may have come since. Only what our own keys have signed leads here.
      known = await read();
      return known.includes(issuer);
    },
    async listening(url) {
      origin = url;
      await remember(url);
    },
  };
}
