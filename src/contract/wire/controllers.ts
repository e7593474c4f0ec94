// The controller routes' documents, and the events of a development session (`POST /v1/dev/sessions`, application/x-ndjson: one event a
// line from `ready` on; closing the request ends the session).
import Type from "typebox";

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

/** A contract or build problem at its place. */
export interface SourceProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly pointer: string;
  readonly code: string;
  readonly message: string;
  readonly fix: string;
}

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
