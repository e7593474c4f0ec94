// What the daemon tells the two stages of a cell's start, in one environment variable that stage 1 deletes.

export const BOOT_VARIABLE = "MAGIC_CELL";

/** Exit code of a stage 0 that could not have what no cell runs without; its error pipe says which. EX_CONFIG of sysexits.h. */
export const UNAVAILABLE = 78;

/** Which layers are wanted. All, but in tests that prove each layer with the others off, and where the operator allowed a weak sandbox. */
export interface Layers {
  /** The two-stage kernel lockdown; false: plain process isolation. */
  readonly kernel: boolean;
  readonly seccomp: boolean;
  readonly landlock: boolean;
  /** Node's --permission. */
  readonly permission: boolean;
  /** Built-ins and process functions taken away inside the realm. */
  readonly realm: boolean;
}

export const allLayers: Layers = { kernel: true, seccomp: true, landlock: true, permission: true, realm: true };

export interface Boot {
  readonly node: string;
  readonly flags: readonly string[];
  /** Absolute path of the zygote's bundle. */
  readonly zygote: string;
  /** Folders and files that landlock leaves readable until the controller is loaded. */
  readonly readable: readonly string[];
  /** Process id of the daemon: a stage 0 that finds another parent was orphaned before it could ask for the death signal. */
  readonly parent: number;
  readonly layers: Layers;
}

/** What stage 0 could not have, said to stage 1 in BOOT_VARIABLE and by it to the daemon. */
export interface StageZeroOutcome {
  readonly layers: Layers;
  /** ABI of landlock, 0 without. */
  readonly landlock: number;
  readonly missing: readonly string[];
}
