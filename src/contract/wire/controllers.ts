// The controller routes' documents, and the events of a development session (`POST /v1/dev/sessions`, application/x-ndjson: one event a
// line from `ready` on; closing the request ends the session).
import Type from "typebox";
import { CONTROLLER_NAME } from "../controller.ts";
import type { Problem } from "../problem.ts";
import { listQuery } from "./list.ts";

export const InvokeRequest = Type.Object(
  {
    input: Type.Unknown({ description: "Checked against the contract's input_schema." }),
    version: Type.Optional(Type.String({ description: "A version or an alias; without it, what serves by default." })),
  },
  { additionalProperties: false },
);

export const InvokeResponse = Type.Object({
  output: Type.Unknown(),
  request_id: Type.String(),
  version: Type.String(),
  duration_ms: Type.Number(),
  usage: Type.Record(Type.String(), Type.Unknown()),
});

const Name = Type.String({ pattern: CONTROLLER_NAME });
export const Alias = Type.String({
  pattern: "^[a-z][a-z0-9_-]{0,31}$",
  description: "A name for a version, such as latest or stable.",
});
const Percent = Type.Integer({
  minimum: 1,
  maximum: 100,
  description: "Below 100: the version gets that share of the alias's calls.",
});

/** What `magic build` makes. */
export const DeployRequest = Type.Object(
  {
    contract: Type.Object({}, { additionalProperties: true }),
    code: Type.String({ description: "The bundle: one script, CommonJS." }),
    map: Type.Optional(Type.String({ description: "Source map of the bundle, JSON." })),
    digest: Type.String({ pattern: "^sha256:[0-9a-f]{64}$" }),
    alias: Type.Optional(Alias),
    percent: Type.Optional(Percent),
  },
  { additionalProperties: false },
);

export const DeployedVersion = Type.Object({
  object: Type.Literal("controller_version"),
  name: Type.String(),
  version: Type.String(),
  digest: Type.String(),
  alias: Type.String(),
  created_at: Type.String(),
});

export const PromoteRequest = Type.Object(
  { version: Type.String({ minLength: 1 }), percent: Type.Optional(Percent) },
  { additionalProperties: false },
);

export const RollbackRequest = Type.Union([
  Type.Object({ alias: Type.Optional(Alias) }, { additionalProperties: false }),
  Type.Null(),
]);

/** Whoever names no limit gets all: a root has few. */
export const ControllersQuery = listQuery({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: "How many at most; all, where it is not given." }),
  ),
});

export const ControllerVersion = Type.Object({
  version: Type.String(),
  digest: Type.String(),
  created_at: Type.String(),
});

export const ControllerDocument = Type.Object({
  object: Type.Literal("controller"),
  name: Type.String(),
  serving: Type.Union([Type.String(), Type.Null()]),
  aliases: Type.Record(Type.String(), Type.String()),
  rollout: Type.Union([Type.Object({ version: Type.String(), percent: Type.Integer() }), Type.Null()]),
  versions: Type.Array(ControllerVersion),
  development: Type.Boolean(),
  contract: Type.Unknown(),
});

export const DevelopmentRequest = Type.Object(
  {
    folder: Type.String({
      minLength: 1,
      description: "Absolute path of the folder that holds the controllers, or of one.",
    }),
    only: Type.Optional(Type.Array(Name, { minItems: 1 })),
  },
  { additionalProperties: false },
);

export const BuildRequest = Type.Object({ folder: Type.String({ minLength: 1 }) }, { additionalProperties: false });

/** A contract or build problem at its place. */
export type SourceProblem = Omit<Problem, "value">;

/** Milliseconds of each step between a save and the new version serving. */
export interface ReloadPhases {
  readonly detect_ms: number;
  readonly build_ms: number;
  readonly boot_ms: number;
  readonly swap_ms: number;
}

export type DevelopmentEvent =
  | {
      readonly type: "ready";
      readonly time: string;
      /** For POST /v1/dev/sessions/ID/reload. */
      readonly session: string;
      readonly folder: string;
      readonly controllers: readonly { name: string; version: string; digest: string }[];
      /** Controllers that do not build or validate yet; an `invalid` event follows for each. */
      readonly invalid: readonly string[];
    }
  | {
      readonly type: "reload";
      readonly time: string;
      readonly controller: string;
      readonly version: string;
      readonly digest: string;
      /** Save to live. */
      readonly duration_ms: number;
      readonly phases: ReloadPhases;
      readonly changed: readonly string[];
    }
  | {
      readonly type: "invalid";
      readonly time: string;
      readonly controller: string;
      readonly problems: readonly SourceProblem[];
      /** The last good version, which keeps serving; null when there is none. */
      readonly serving: string | null;
    }
  | { readonly type: "removed"; readonly time: string; readonly controller: string }
  | { readonly type: "stopped"; readonly time: string; readonly reason: string };
