// The AI gateway over the daemon's foundation: its way out, its stores, its seal, and the configuration that it follows.
import { createEgress, type Egress } from "./egress/egress.ts";
import type { Foundation } from "./foundation.ts";
import { createPipeline, type GatewayPipeline } from "./gateway/pipeline.ts";
import { createProviders } from "./gateway/providers/registry.ts";
import { durableMemory } from "./gateway/providers/thoughts/durable.ts";
import { gatewayStores } from "./gateway/stores.ts";

/** Attempts bound their own times; the dispatcher's are beyond the longest that magic.yaml allows. */
const BEYOND_ANY_ATTEMPT_MS = 3_600_000 + 60_000;

export async function wireGateway(foundation: Foundation): Promise<GatewayPipeline> {
  const { clock, logger, metrics, project, seals, storage, tracer } = foundation;
  const allowPrivate = () => project.current().egress?.allow_private ?? [];
  const egress: Egress = createEgress({
    allowPrivate,
    headersTimeoutMs: BEYOND_ANY_ATTEMPT_MS,
    bodyTimeoutMs: BEYOND_ANY_ATTEMPT_MS,
  });
  foundation.onClose(() => egress.close());
  // Another guard: names that callers make up must not hold up the providers'.
  const images = createEgress({ allowPrivate });
  foundation.onClose(() => images.close());
  const signatures = durableMemory(storage.units.gatewaySignature, seals.passing("signatures"), clock, logger);
  foundation.onClose(() => signatures.close());
  const providers = createProviders(egress.dispatcher, signatures, images.dispatcher);
  const stores = gatewayStores(storage, clock, foundation.presence);
  const gateway = await createPipeline({
    config: project.current().gateway,
    provider: (kind) => providers[kind],
    stores,
    sealer: seals.passing("idempotency"),
    logger,
    metrics,
    tracer,
    clock,
  });
  foundation.onClose(() => gateway.close());
  project.onChange(({ gateway: section }) => gateway.reconfigure(section));
  return gateway;
}
