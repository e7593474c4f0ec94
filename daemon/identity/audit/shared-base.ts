// Where retention has put the log's beginning, kept in the database too: daemons that share it have an anchor each, and the others' does
// not tell. Under a MAC, and only ever taken for what lies further on: who writes the database alone gains nothing by it.
import { createHmac } from "node:crypto";
import type { Storage } from "#daemon/storage/storage.ts";
import { sameDigest } from "../credentials/secret.ts";
import { type ChainHead, GENESIS } from "./chain.ts";

const KEY = "identity.audit_base";

export interface SharedBase {
  /** GENESIS where there is none, or it does not hold. */
  read(): Promise<ChainHead>;
  write(base: ChainHead): Promise<void>;
}

export function sharedBase({ setting }: Pick<Storage["units"], "setting">, key: Buffer): SharedBase {
  const seal = ({ sequence, mac }: ChainHead) =>
    createHmac("sha256", key)
      .update(JSON.stringify(["base", sequence, mac]))
      .digest("base64url");
  return {
    async read() {
      try {
        const text = await setting.get({ key: KEY });
        const { sequence, mac, sealed } = JSON.parse(text ?? "null") as ChainHead & { readonly sealed: string };
        return sameDigest(sealed, seal({ sequence, mac })) ? { sequence, mac } : GENESIS;
      } catch {
        return GENESIS;
      }
    },
    async write({ sequence, mac }) {
      const sealed = seal({ sequence, mac });
      await setting.put({ key: KEY, value: JSON.stringify({ sequence, mac, sealed }) });
    },
  };
}

export const further = (a: ChainHead, b: ChainHead): ChainHead => (b.sequence > a.sequence ? b : a);
