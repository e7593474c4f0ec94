// The controller runtime over the rest of the daemon.
import { controllerPorts, type PortSources } from "./controller-ports.ts";
import { createRuntime, type OwnedRuntime } from "./controllers/create-runtime.ts";
import type { SyncPort } from "./controllers/ports.ts";
import { createEgress } from "./egress/egress.ts";
import type { Foundation } from "./foundation.ts";
import type { Gateway } from "./gateway/call.ts";

export interface ControllerWiring {
  readonly gateway: Gateway;
  readonly syncs: SyncPort | null;
  readonly connectedDatabase: PortSources["connectedDatabase"];
  readonly allowWeakSandbox: boolean;
  /** True in the daemon's own process. */
  readonly prewarm: boolean;
}

export function wireControllers(foundation: Foundation, wiring: ControllerWiring): OwnedRuntime {
  const { root, storage, project, logger, metrics, tracer, clock } = foundation;
  const egress = createEgress({ allowPrivate: () => project.current().egress?.allow_private ?? [] });
  foundation.onClose(() => egress.close());
  const { allowWeakSandbox, prewarm, ...others } = wiring;
  const ports = controllerPorts({ ...others, storage, project, egress });
  const runtime = createRuntime({
    root,
    storage,
    log: logger,
    metrics,
    tracer,
    clock,
    ports,
    allowWeakSandbox,
    prewarm,
  });
  foundation.onClose(() => runtime.close());
  return runtime;
}
