// The `gateway` section of magic.yaml as the gateway reads it: validated and interpolated.
import type {
  BudgetConfig,
  GatewayConfig,
  PolicyConfig,
  PriceConfig,
  ProviderConfig,
  strategies,
} from "#contract/project-gateway.ts";

export type { BudgetConfig, GatewayConfig, PolicyConfig, PriceConfig, ProviderConfig };
export type Strategy = (typeof strategies)[number];
export type LimitsConfig = NonNullable<GatewayConfig["limits"]>;
