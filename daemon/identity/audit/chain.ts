// The chain of the audit log: each entry's MAC covers its content, its number and the MAC before it, so that no entry can be
// changed, left out, moved or added without the key. Pure; nothing here reads or writes.
import type { Outcome } from "#contract/audit.ts";
import type { PrincipalType } from "#contract/identity.ts";
import type { Environment } from "#contract/protocol.ts";
import { macBy } from "./mac.ts";

/** One call, as the log keeps it. */
export interface AuditRecord {
  readonly id: string;
  /** RFC 3339. */
  readonly timestamp: string;
  readonly identity_type: PrincipalType;
  readonly identity_id: string | null;
  readonly action: string;
  readonly resource: string | null;
  readonly outcome: Outcome;
  readonly status: number;
  readonly request_id: string;
  readonly environment: Environment;
}

/** A record in its place in the chain. */
export interface ChainedRecord extends AuditRecord {
  /** 1, 2, 3... without gaps. */
  readonly sequence: number;
  readonly mac: string;
}

/** The end of a chain: what the next entry continues. */
export interface ChainHead {
  readonly sequence: number;
  readonly mac: string;
}

export const GENESIS: ChainHead = { sequence: 0, mac: "" };

/** What an entry says, as a JSON array in the columns' order: one text is cheaper to hold than a record, and its MAC covers just that. */
export function contentOf(record: AuditRecord): string {
  return JSON.stringify([
    record.id,
    record.timestamp,
    record.identity_type,
    record.identity_id,
    record.action,
    record.resource,
    record.outcome,
    record.status,
    record.request_id,
    record.environment,
  ]);
}

/** Of a record, from its content. */
export function idOf(content: string): string {
  return (JSON.parse(content) as [string])[0];
}

/** Makes the MACs of entries: HMAC-SHA-256, base64url, of a JSON array of the MAC before it, its number and everything that the entry says. */
export function chainMac(key: Buffer): (before: string, sequence: number, content: string) => string {
  const mac = macBy(key);
  return (before, sequence, content) => mac(`[${JSON.stringify(before)},${sequence},${content.slice(1)}`);
}

/** The entries of these contents, chained on behind `head`: rows as a JSON array of arrays, and the new head. */
export function chain(
  key: Buffer,
  head: ChainHead,
  contents: readonly string[],
): { readonly rows: string; readonly head: ChainHead } {
  const macOf = chainMac(key);
  let { sequence, mac } = head;
  const rows = contents.map((content) => {
    sequence++;
    mac = macOf(mac, sequence, content);
    return `[${sequence},${content.slice(1, -1)},"${mac}"]`;
  });
  return { rows: `[${rows.join(",")}]`, head: { sequence, mac } };
}
