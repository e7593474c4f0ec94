import type { Generated } from "kysely";

/** The spans of one request that ended together, as JSON. */
export interface TraceTable {
  readonly sequence: Generated<number>;
  readonly request_id: string;
  readonly at: string;
  readonly spans: string;
}

export const traceColumns = ["request_id", "at", "spans"] as const satisfies readonly (keyof TraceTable)[];

export interface TraceTables {
  readonly trace: TraceTable;
}
