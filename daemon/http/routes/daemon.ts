// GET /v1/daemon: proves to the command line that it talks to the daemon of its root, and tells `doctor` how it fares.
// POST /v1/daemon/keep: what some command started is the user's from now on.
import type { FastifyInstance } from "fastify";
import { Type } from "typebox";
import { type ErrorCode, errors } from "#contract/errors.ts";
import { type Problem, problemLine } from "#contract/problem.ts";
import { PROTOCOL, VERSION } from "#contract/protocol.ts";
import { DaemonInfo, type DaemonProblem, type Isolation } from "#contract/wire/daemon.ts";
import type { Activity } from "../activity.ts";

export interface DaemonServices {
  readonly root: string;
  readonly activity: Activity;
  /** The cell's lockdown on this machine; null where no controllers can run. */
  readonly isolation: () => Promise<Isolation | null>;
  /** `mismatch`: what is wrong with the master key; null where it is the right one. */
  readonly seals: { readonly mismatch: string | null };
  readonly project: {
    missing(): readonly { readonly name: string; readonly pointer: string }[];
    problems(): readonly Problem[];
  };
}

export function daemonRoutes(
  app: FastifyInstance,
  { root, activity, isolation, seals, project }: DaemonServices,
): void {
  const config = { scope: "logs:read", surface: "local", quiet: true } as const;
  const schema = { operationId: "getDaemon", response: { 200: DaemonInfo } };
  app.get("/v1/daemon", { config, schema }, async (): Promise<DaemonInfo> => {
    return {
      pid: process.pid,
      root,
      version: VERSION,
      protocol: PROTOCOL,
      uptime_s: Math.floor(process.uptime()),
      memory_mb: Math.round(process.memoryUsage.rss() / 2 ** 20),
      idle_ms: Math.round(activity.idleFor()),
      held_by: (await activity.heldBy()) ?? null,
      isolation: await isolation(),
      unset: project.missing().map(({ name, pointer }) => `${name} (${pointer})`),
      problems: [
        ...(seals.mismatch === null ? [] : [problemOf("master_key_mismatch", seals.mismatch)]),
        ...editProblem(project.problems()),
      ],
    };
  });
  const keep = { operationId: "keepDaemon", response: { 204: Type.Null() } };
  app.post("/v1/daemon/keep", { config, schema: keep }, (_request, reply) => {
    activity.hold("magic daemon start", () => true);
    return reply.code(204).send();
  });
}

// Whoever has just saved it looks here for why nothing has changed.
function editProblem([first, ...others]: readonly Problem[]): DaemonProblem[] {
  if (!first) return [];
  const more = others.length > 0 ? ` (and ${others.length} more)` : "";
  const detail = `magic.yaml as it was saved last is not in force, the one before it is: ${problemLine(first)}${more}`;
  return [problemOf("config_invalid", detail)];
}

function problemOf(code: ErrorCode, detail: string): DaemonProblem {
  return { code, detail, next: errors[code].next };
}
