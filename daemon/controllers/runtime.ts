// The controller runtime as the rest of the daemon sees it: deploy, invoke, versions, development sessions.
import type { ControllerContract } from "#contract/controller.ts";
import type { Principal } from "#contract/identity.ts";
import type { DevelopmentEvent } from "#contract/wire/controllers.ts";
import type { Isolation } from "#contract/wire/daemon.ts";
import type { Span } from "#daemon/telemetry/trace.ts";
import type { AbortNotice } from "#shared/abort.ts";
import type { Holder } from "./serving/nested.ts";

/** A built controller: one self-contained script, its source map, and the digest over contract and script. */
export interface Artifact {
  readonly contract: ControllerContract;
  readonly code: string;
  /** Source map (v3, JSON text) so that stack traces show the user's lines. */
  readonly map: string;
  /** `sha256:<hex>` over the contract and the code: the same sources give the same digest. */
  readonly digest: string;
}

export interface DeployOptions {
  readonly alias?: string;
  readonly percent?: number;
}

export interface DeployedVersion {
  readonly name: string;
  readonly version: string;
  readonly digest: string;
  readonly alias: string;
  readonly created_at: string;
}

export interface Invocation {
  readonly input: unknown;
  /** A version, an alias, or what serves by default. */
  readonly version?: string | undefined;
  readonly requestId: string;
  readonly principal: Principal;
  /** Aborted when the caller leaves. */
  readonly signal?: AbortNotice | undefined;
  /** Nesting of controller:invoke; 0 for a call from outside. */
  readonly depth?: number | undefined;
  /** Of the invocation around it, which this one cannot outlast: milliseconds since the epoch. */
  readonly deadline?: number | undefined;
  /** The invocation around it. */
  readonly within?: Holder | undefined;
  /** Secrets that the invocation around it knows: they may be in its input. */
  readonly secrets?: Set<string> | undefined;
  readonly span?: Span | undefined;
}

export interface InvocationResult {
  /** A LargeOutput where its text is long. */
  readonly output: unknown;
  readonly request_id: string;
  readonly version: string;
  readonly duration_ms: number;
  readonly usage: Record<string, unknown>;
}

export interface ControllerSummary {
  readonly name: string;
  /** What an invocation without a version reaches now. */
  readonly serving: string | null;
  readonly aliases: Readonly<Record<string, string>>;
  readonly rollout: { readonly version: string; readonly percent: number } | null;
  readonly versions: readonly { version: string; digest: string; created_at: string }[];
  /** True while a development session serves it from the working folder. */
  readonly development: boolean;
  readonly contract: ControllerContract | null;
}

export interface DevelopOptions {
  readonly folder: string;
  readonly only?: readonly string[];
  /** Aborted when nobody waits for it any more. */
  readonly signal?: AbortSignal;
}

export interface DevelopmentSession {
  /** Events from `ready` on; ends after `stopped`. */
  readonly events: AsyncIterable<DevelopmentEvent>;
  /** Builds everything again now. */
  reload(): void;
  close(reason?: string): Promise<void>;
}

export interface ControllerRuntime {
  /**
   * Builds the controller in a folder of this machine. Throws contract_invalid, build_failed or build_timeout with every problem, draining, or
   * the signal's reason.
   */
  build(folder: string, signal?: AbortSignal): Promise<Artifact>;
  /** Stores an immutable version and moves `latest` to it. Throws conflict, incompatible_version. */
  deploy(artifact: Artifact, options?: DeployOptions): Promise<DeployedVersion>;
  /** Runs the handler once; throws MagicError with the codes of the invoke route. */
  invoke(name: string, invocation: Invocation): Promise<InvocationResult>;
  list(): Promise<ControllerSummary[]>;
  get(name: string): Promise<ControllerSummary>;
  /** Points an alias at a version; `percent` below 100 sends it that share of the unversioned calls. */
  promote(name: string, alias: string, version: string, percent?: number): Promise<ControllerSummary>;
  /** Points `latest` (or the alias) back at what it pointed at before. */
  rollback(name: string, alias?: string): Promise<ControllerSummary>;
  /** Removes one version, or the controller with all of them, after its calls ended. */
  remove(name: string, version?: string): Promise<void>;
  develop(options: DevelopOptions): Promise<DevelopmentSession>;
  isolation(): Promise<Isolation>;
  /** Ends every cell after its calls; new calls are refused with `draining`. */
  close(graceMs?: number): Promise<void>;
}
