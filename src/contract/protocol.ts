// The protocol between the command line and the daemon: the runtime file, the handshake, the header names.
// Raise PROTOCOL when an older command line could misread a newer daemon, or the other way round; additions need no raise.

export const PROTOCOL = 1;
export const VERSION = "0.1.0";
export const API_VERSION = "v1";
export const DEFAULT_PORT = 4141;

export const environments = ["sandbox", "live"] as const;
/** sandbox: simulated, works offline. live: real providers and systems. */
export type Environment = (typeof environments)[number];

/** `<root>/.magic/daemon.json`, mode 0600; written when the daemon is ready, removed when it stops. */
export interface RuntimeFile {
  readonly pid: number;
  /** Process start time in clock ticks since boot (/proc/PID/stat field 22), so that a reused pid is noticed; null where unknown. */
  readonly pid_started: string | null;
  readonly started_at: string;
  /** The address that it listens at, also where the URL names another one in the place of a wildcard. */
  readonly host: string;
  readonly port: number;
  readonly url: string;
  readonly protocol: number;
  readonly version: string;
  readonly root: string;
  /** The flags that it was started with, so that a restart keeps them. */
  readonly flags?: readonly string[];
  /** The command line's own credential: every scope, loopback only, not rate limited. */
  readonly local_token: string;
  readonly gateway_token: string;
  readonly api_key: string;
  readonly admin_key: string;
}

/** What `magic daemon start|status --json` prints. `gateway_url` and `base_url` are origins: clients append /v1/... */
export interface DaemonDocument extends Omit<RuntimeFile, "pid_started" | "host" | "port" | "started_at" | "flags"> {
  readonly gateway_url: string;
  readonly base_url: string;
}

/** The files in `<root>/.magic` by which daemons and commands find each other. */
export const runtimeNames = {
  runtime: "daemon.json",
  starting: "daemon.starting.json",
  crash: "daemon.crash.json",
  lock: "daemon.lock",
  output: "logs/daemon.out",
  log: "logs/daemon.log",
} as const;

/** Written by the owner of the lock until it is ready. */
export interface StartingMark {
  readonly pid: number;
  readonly pid_started: string | null;
  readonly started_at: string;
}

/** The last crashes, newest last; `shown` when a command has told the user of the newest. */
export interface CrashNote {
  readonly crashes: readonly {
    readonly at: string;
    readonly pid: number;
    readonly message: string;
    readonly stack: string;
  }[];
  readonly shown: boolean;
}

/** What the daemon's process tells the command that spawned it, over the IPC channel, once. */
export type ReadyMessage =
  | { readonly type: "ready"; readonly runtime: RuntimeFile; readonly notes: readonly string[] }
  | {
      readonly type: "failed";
      readonly code: string;
      readonly detail: string;
      readonly extra: Readonly<Record<string, unknown>>;
    };

export const headers = {
  requestId: "x-request-id",
  environment: "magic-environment",
  idempotencyKey: "idempotency-key",
  idempotentReplayed: "idempotent-replayed",
} as const;

/** A well-formed X-Request-Id; any other is replaced by one of ours. */
export const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;
