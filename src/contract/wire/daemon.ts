import { type Static, Type } from "typebox";

/** One layer of the cell's lockdown, and whether it is in force on this machine. */
const IsolationLayer = Type.Object({
  name: Type.String(),
  active: Type.Boolean(),
  detail: Type.Optional(Type.String()),
});

/** How controllers are locked down here: what `magic doctor` shows. */
export const Isolation = Type.Object({
  level: Type.String(),
  layers: Type.Array(IsolationLayer),
});
export type Isolation = Static<typeof Isolation>;

/** What keeps a part of a daemon that runs from working: a code of the error catalogue, what it is here, what to do. */
export const DaemonProblem = Type.Object({ code: Type.String(), detail: Type.String(), next: Type.String() });
export type DaemonProblem = Static<typeof DaemonProblem>;

/** GET /v1/daemon: who answers here. For the command line of this machine alone. */
export const DaemonInfo = Type.Object(
  {
    pid: Type.Integer(),
    root: Type.String(),
    version: Type.String(),
    protocol: Type.Integer(),
    uptime_s: Type.Integer(),
    memory_mb: Type.Integer(),
    idle_ms: Type.Integer(),
    held_by: Type.Union([Type.String(), Type.Null()]),
    isolation: Type.Union([Isolation, Type.Null()]),
    /** Variables that magic.yaml names and the daemon's environment lacks, each with where it is named. */
    unset: Type.Array(Type.String()),
    problems: Type.Array(DaemonProblem),
  },
  { $id: "DaemonInfo" },
);
export type DaemonInfo = Static<typeof DaemonInfo>;
