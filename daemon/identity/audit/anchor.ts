// The head of the audit chain, kept outside the database: who can write the database alone cannot cut the log's end off
// unseen. It also holds the base that retention left behind. Itself under a MAC, in the user's state folder, 0600.
import { createHmac, hash } from "node:crypto";
import { dirname, join } from "node:path";
import type { DialectName } from "#daemon/storage/dialect.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { textIfThere } from "#shared/plain-file.ts";
import { replaceFile } from "#shared/replace-file.ts";
import { createTurns, inTurn } from "#shared/turns.ts";
import { sameDigest } from "../credentials/secret.ts";
import type { ChainHead } from "./chain.ts";

export interface Anchor {
  /** The last entry that was stored when this was written. */
  readonly head: ChainHead;
  /** The checkpoint of retention: entries up to here may be gone. */
  readonly base: ChainHead;
  /** The last entry of a master key that was given up: for it and those before it nobody can vouch. */
  readonly lost?: ChainHead | undefined;
}

export interface AnchorFile {
  /** undefined where there is none; "invalid" where it is damaged or its MAC does not hold. */
  read(): Promise<Anchor | "invalid" | undefined>;
  /** Replaces it whole. `durable`: on the disk when it resolves; otherwise it survives the process, not the machine. */
  write(anchor: Anchor, durable?: boolean): Promise<void>;
}

/** The anchor's name for a root: by its path, so that a copied root keeps one of its own. The log in PostgreSQL is another than that of the root's file. */
export function anchorName(root: string, dialect: DialectName): string {
  return hash("sha256", dialect === "sqlite" ? root : `${root}\n${dialect}`, "hex").slice(0, 32);
}

export function anchorPath(userState: string, name: string): string {
  return join(userState, "audit", `${name}.json`);
}

export function anchorFile(path: string, key: Buffer): AnchorFile {
  const turns = createTurns();
  const macOfAnchor = ({ head, base, lost }: Anchor): string => {
    const places = [head, base, ...(lost ? [lost] : [])].flatMap(({ sequence, mac }) => [sequence, mac]);
    return createHmac("sha256", key)
      .update(JSON.stringify(["anchor", ...places]))
      .digest("base64url");
  };
  return {
    async read() {
      const text = await textIfThere(path);
      if (text === undefined) return undefined;
      try {
        const { mac, ...anchor } = JSON.parse(text) as Anchor & { mac: string };
        return sameDigest(mac, macOfAnchor(anchor)) ? anchor : "invalid";
      } catch {
        return "invalid";
      }
    },
    // In turn: two at once, as after a freeze, would write one file.
    write: (anchor, durable = false) => inTurn(turns, path, () => replace(anchor, durable)),
  };

  async function replace({ head, base, lost }: Anchor, durable: boolean): Promise<void> {
    const place = ({ sequence, mac }: ChainHead) => ({ sequence, mac });
    const anchor: Anchor = { head: place(head), base: place(base), ...(lost && { lost: place(lost) }) };
    makeFolder(dirname(path), 0o700);
    await replaceFile(path, `${JSON.stringify({ ...anchor, mac: macOfAnchor(anchor) })}\n`, durable);
  }
}
