// What the command line asks of the process that runs declarative connectors, over IPC, and what it answers.
import type { ErrorCode, FieldProblem } from "./errors.ts";

/** What reads the vendor. */
interface OutwardJob {
  readonly manifest: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Private addresses (`host:port`) that the project's magic.yaml opens. */
  readonly allow_private?: readonly string[];
}

export type ConnectorJob =
  /** Parse, resolve and build every stream. */
  | { readonly type: "inspect"; readonly manifest: string }
  | (OutwardJob & { readonly type: "check" })
  | (OutwardJob & {
      readonly type: "read";
      readonly stream: string;
      readonly state?: unknown;
      readonly limit?: number;
      /** Simulated records instead of the vendor's. */
      readonly sandbox?: boolean;
    })
  /** The first page of the first stream as it came: answers one `page`. */
  | (OutwardJob & { readonly type: "probe" })
  /** Evaluate templates, in order; after each `values` it is told more. */
  | { readonly type: "eval"; readonly cases: readonly EvalCase[] };

export interface EvalCase {
  readonly template: string;
  readonly context: Readonly<Record<string, unknown>>;
}

export interface ConnectorSummary {
  readonly title: string | null;
  readonly version: string;
  readonly config_schema: Readonly<Record<string, unknown>>;
  readonly streams: readonly {
    readonly name: string;
    readonly primary_key: readonly string[];
    readonly cursor_field: string | null;
    readonly schema: Readonly<Record<string, unknown>> | null;
    /** Why the stream cannot run; null: it can. */
    readonly refused: string | null;
  }[];
  /** Streams that the manifest's check reads, and that there are not. */
  readonly missing_checks: readonly string[];
  /** True: there are more streams, made from the configuration or by the vendor. */
  readonly dynamic: boolean;
}

export type ConnectorReply =
  | { readonly type: "ready" }
  | { readonly type: "summary"; readonly summary: ConnectorSummary }
  | {
      readonly type: "records";
      readonly records: readonly Readonly<Record<string, unknown>>[];
      /** True: String objects in them are numbers, for `unpackNumbers`. */
      readonly exact?: boolean;
    }
  | {
      readonly type: "page";
      readonly url: string;
      /** Lower-case names. */
      readonly headers: Readonly<Record<string, string>>;
      readonly body: unknown;
    }
  | { readonly type: "state"; readonly state: unknown }
  /** True: the vendor is about to answer with the only token that will be good; to end the process now would lose it. */
  | { readonly type: "refreshing"; readonly now: boolean }
  | { readonly type: "log"; readonly level: "info" | "warn"; readonly message: string }
  | { readonly type: "values"; readonly values: readonly ({ readonly value: unknown } | { readonly error: string })[] }
  | {
      readonly type: "failed";
      readonly code: ErrorCode;
      readonly detail: string;
      readonly problems: readonly FieldProblem[];
    }
  | { readonly type: "end" };

/** The command line: a job, room for more (each `records` is answered by one), or more to do (each `values`; none: that is all). */
export type ConnectorRequest =
  | { readonly type: "job"; readonly job: ConnectorJob }
  | { readonly type: "more" }
  | { readonly type: "cases"; readonly cases: readonly EvalCase[] };
