// The development sessions of a runtime, by id: each serves what its folder holds now.
import { MagicError } from "#contract/errors.ts";
import { onAbort } from "#shared/abort.ts";
import type { RuntimeMetrics } from "./metrics.ts";
import { openSession } from "./reload/session.ts";
import type { Artifact, DevelopmentSession, DevelopOptions } from "./runtime.ts";
import type { Instance } from "./serving/instance.ts";
import type { Registry } from "./serving/registry.ts";

export interface Development {
  /** `signal`, aborted before it is ready, ends it. */
  start(options: DevelopOptions & { signal: AbortSignal }): Promise<DevelopmentSession>;
  /** Builds everything of a session again. Throws not_found. */
  reload(session: string): void;
  /** Ends every session. */
  stop(reason: string): Promise<void>;
}

export function openDevelopment(services: {
  readonly root: string;
  readonly buildWithinMs: number | undefined;
  readonly registry: Registry;
  readonly metrics: RuntimeMetrics;
  open(artifact: Artifact): Instance;
}): Development {
  const { root, buildWithinMs, registry, metrics, open } = services;
  const sessions = new Map<string, DevelopmentSession>();

  async function serve(artifact: Artifact, session: string, overtaken: AbortSignal) {
    const began = performance.now();
    const instance = open(artifact);
    await instance.start(overtaken);
    const booted = performance.now();
    registry.develop(artifact.contract.name, session, instance);
    metrics.reload(artifact.contract.name, performance.now() - began);
    return { bootMs: booted - began, swapMs: performance.now() - booted };
  }

  return {
    async start({ folder, only, signal }) {
      const host = { serve, withdraw: registry.withdraw };
      const session = await openSession({ folder, root, only, buildWithinMs }, host);
      const held: DevelopmentSession = {
        ...session,
        async close(reason) {
          sessions.delete(session.id);
          await session.close(reason);
        },
      };
      sessions.set(session.id, held);
      const forget = onAbort(signal, () => void held.close("the listener left"));
      await session.ready.finally(forget);
      return held;
    },
    reload(id) {
      const session = sessions.get(id);
      if (!session) throw new MagicError("not_found", `there is no development session ${id}`);
      session.reload();
    },
    async stop(reason) {
      await Promise.all([...sessions.values()].map((session) => session.close(reason)));
    },
  };
}
