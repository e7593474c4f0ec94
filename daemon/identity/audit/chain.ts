// The chain of the audit log: each entry's MAC covers its content, its number and the MAC before it, so that no entry can be
// changed, left out, moved or added without the key. Pure; nothing here reads or writes.
import { createHmac } from "node:crypto";
import type { PrincipalType } from "#contract/identity.ts";
import type { Environment } from "#contract/protocol.ts";

export type Outcome = "success" | "refused" | "failed";

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

/** HMAC-SHA-256, base64url, of the head before it and everything that the entry says. */
export function macOf(key: Buffer, before: string, sequence: number, record: AuditRecord): string {
  const content = [
    before,
    sequence,
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
  ];
  return createHmac("sha256", key).update(JSON.stringify(content)).digest("base64url");
}

/** The records, chained on behind `head`. */
export function chain(key: Buffer, head: ChainHead, records: readonly AuditRecord[]): ChainedRecord[] {
  let { sequence, mac } = head;
  return records.map((record) => {
    sequence++;
    mac = macOf(key, mac, sequence, record);
    return { ...record, sequence, mac };
  });
}
