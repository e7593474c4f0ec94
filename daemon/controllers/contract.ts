// The part of a controller's contract that the runtime acts on.

export interface HttpGrant {
  readonly host: string;
  readonly port?: number;
  readonly methods?: readonly string[];
  /** https unless said otherwise. */
  readonly scheme?: "https" | "http";
}

export interface DatabaseGrant {
  readonly name: string;
  readonly mode?: "read" | "write";
}

/** A contract that has passed validation; `#contract/controller.ts` makes it of contract.yaml. */
export interface RuntimeContract {
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  readonly input_schema: boolean | Record<string, unknown>;
  readonly output_schema: boolean | Record<string, unknown>;
  readonly capabilities?: readonly string[];
  readonly scopes?: {
    readonly llm?: { readonly models?: readonly string[]; readonly usd_per_day?: number };
    readonly http?: readonly HttpGrant[];
    readonly db?: readonly DatabaseGrant[];
    readonly secrets?: readonly string[];
    readonly controllers?: readonly string[];
    readonly syncs?: readonly string[];
  };
  readonly limits?: { readonly timeout_ms?: number; readonly memory_mb?: number; readonly concurrency?: number };
  readonly isolation?: "process" | "invocation";
}
