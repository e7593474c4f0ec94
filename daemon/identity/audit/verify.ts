// Proves the audit log: walks the chain from its base to the anchored head and names what does not fit.
import { sameDigest } from "../credentials/secret.ts";
import type { Anchor } from "./anchor.ts";
import { type ChainedRecord, type ChainHead, chainMac, contentOf, GENESIS } from "./chain.ts";

export interface AuditProblem {
  /** altered: an entry's content or MAC was changed. missing: entries were taken out. truncated: the end was cut off.
   *  unexpected: an entry that has no place in the chain.
   *  anchor_mismatch: the log is not the one that the anchor saw. anchor_missing, anchor_invalid: the anchor itself. */
  readonly code:
    | "altered"
    | "missing"
    | "unexpected"
    | "truncated"
    | "anchor_mismatch"
    | "anchor_missing"
    | "anchor_invalid";
  /** The first entry concerned. */
  readonly sequence: number;
}

export interface Verification {
  readonly valid: boolean;
  readonly entries: number;
  /** How many of them are of a master key that was given up: nothing is said about these. */
  readonly unproven: number;
  readonly problems: readonly AuditProblem[];
}

const MAX_PROBLEMS = 1_000;

/**
 * Walks `pages` (ascending by sequence; entries up to the anchor's base are gone by then). `anchor` is undefined where there is none and "invalid"
 * where its own MAC does not hold. Reports at most 1,000 problems.
 */
export async function verifyChain(
  key: Buffer,
  anchor: Anchor | "invalid" | undefined,
  pages: AsyncIterable<readonly ChainedRecord[]>,
): Promise<Verification> {
  const problems: AuditProblem[] = [];
  const report = (code: AuditProblem["code"], sequence: number) => {
    if (problems.length < MAX_PROBLEMS) problems.push({ code, sequence });
  };
  const macOf = chainMac(key);
  const known = anchor === "invalid" ? undefined : anchor;
  let head: ChainHead = known?.base ?? GENESIS;
  let entries = 0;
  let unproven = 0;
  for await (const page of pages)
    for (const entry of page) {
      entries++;
      // SQLite stores what it is given: a number may have become a text, or nothing.
      if (!Number.isSafeInteger(entry.sequence) || entry.sequence <= head.sequence) {
        report("unexpected", head.sequence + 1);
        continue;
      }
      if (known?.lost && entry.sequence <= known.lost.sequence) {
        unproven++;
        if (entry.sequence === known.lost.sequence && !sameDigest(String(entry.mac), known.lost.mac))
          report("anchor_mismatch", entry.sequence);
      } else if (entry.sequence > head.sequence + 1) {
        report("missing", head.sequence + 1);
        // The gap's last MAC is gone: this entry can only be checked against the anchor, the next ones against this one.
      } else if (!sameDigest(String(entry.mac), macOf(head.mac, entry.sequence, contentOf(entry))))
        report("altered", entry.sequence);
      if (known && entry.sequence === known.head.sequence && !sameDigest(String(entry.mac), known.head.mac))
        report("anchor_mismatch", entry.sequence);
      head = entry;
    }
  if (anchor === "invalid") report("anchor_invalid", head.sequence);
  else if (anchor === undefined && entries > 0) report("anchor_missing", head.sequence);
  if (known && head.sequence < known.head.sequence) report("truncated", head.sequence + 1);
  return { valid: problems.length === 0, entries, unproven, problems };
}
