// Is it up, and what of it is not: for the command line, load balancers and monitors. Public, and never logged.
import type { FastifyInstance } from "fastify";
import { API_VERSION, VERSION } from "#contract/protocol.ts";
import { Health } from "#contract/wire/health.ts";

/** Throws, or rejects, when that part does not work. */
export type Check = () => void | Promise<void>;

export interface HealthServices {
  /** What must work for the daemon to be ready, by name. */
  readonly checks: Readonly<Record<string, Check>>;
  /** The deployment's own word for itself, from magic.yaml. */
  readonly deployment: () => "development" | "production";
}

export function healthRoutes(app: FastifyInstance, { checks, deployment }: HealthServices): void {
  const config = { scope: null, surface: "core", quiet: true, action: "health.get" } as const;
  const schema = { operationId: "getHealth", response: { 200: Health, 503: Health } };
  const shared = Object.entries(checks).map(([name, check]) => [name, sharing(check)] as const);
  for (const url of ["/health", "/v1/health"])
    app.get(url, { config, schema }, async (_request, reply) => {
      const results: Record<string, string> = {};
      for (const [name, check] of shared) results[name] = await outcome(check);
      const ready = Object.values(results).every((result) => result === "ok");
      return reply.code(ready ? 200 : 503).send({
        status: ready ? "ok" : "unavailable",
        version: VERSION,
        api_version: API_VERSION,
        environment: deployment(),
        uptime_s: Math.floor(process.uptime()),
        checks: results,
      });
    });
}

// Whoever asks while a check is under way gets its result: of many one after another the last would find that it took too long.
function sharing(check: Check): Check {
  let underWay: Promise<void> | undefined;
  return () => {
    underWay ??= Promise.try(check).finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}

// A check that hangs is a check that failed.
async function outcome(check: Check): Promise<"ok" | "failed"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"failed">((resolve) => {
    timer = setTimeout(resolve, 2_000, "failed");
  });
  try {
    return await Promise.race([Promise.resolve(check()).then(() => "ok" as const), late]);
  } catch {
    return "failed";
  } finally {
    clearTimeout(timer);
  }
}
