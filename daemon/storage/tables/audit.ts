/** The audit log, a chain by `sequence`. What the columns mean and how the MAC is made: daemon/identity/audit/chain.ts. */
export interface AuditEntryTable {
  readonly sequence: number;
  readonly id: string;
  readonly timestamp: string;
  readonly identity_type: string;
  readonly identity_id: string | null;
  readonly action: string;
  readonly resource: string | null;
  readonly outcome: string;
  readonly status: number;
  readonly request_id: string;
  readonly environment: string;
  readonly mac: string;
}

/** The order of the members of a row in `append`; daemon/identity/audit/chain.ts writes them so. */
export const auditColumns = [
  "sequence",
  "id",
  "timestamp",
  "identity_type",
  "identity_id",
  "action",
  "resource",
  "outcome",
  "status",
  "request_id",
  "environment",
  "mac",
] as const satisfies readonly (keyof AuditEntryTable)[];

export interface AuditTables {
  readonly audit_entry: AuditEntryTable;
}
