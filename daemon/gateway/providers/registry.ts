// Every kind of provider, by name. A new one is a folder here and a line below.
import type { Dispatcher } from "undici";
import type { Provider, ProviderKind } from "./adapter.ts";
import { anthropicWire } from "./anthropic/wire.ts";
import { azureWire } from "./azure/wire.ts";
import { bedrockWire } from "./bedrock/wire.ts";
import { createGoogleWire } from "./google/wire.ts";
import { httpProvider } from "./http-provider.ts";
import { openaiWire } from "./openai/wire.ts";
import { sandboxProvider } from "./sandbox/provider.ts";

/** The providers over one way out: the egress guard's dispatcher, in tests any other. */
export function createProviders(dispatcher: Dispatcher): Readonly<Record<ProviderKind, Provider>> {
  return {
    openai: httpProvider(openaiWire, dispatcher),
    anthropic: httpProvider(anthropicWire, dispatcher),
    azure: httpProvider(azureWire, dispatcher),
    bedrock: httpProvider(bedrockWire, dispatcher),
    google: httpProvider(createGoogleWire(), dispatcher),
    sandbox: sandboxProvider,
  };
}
