// Every kind of provider, by name. A new one is a folder here and a line below.
import type { Dispatcher } from "undici";
import type { Provider, ProviderKind } from "./adapter.ts";
import { azureWire } from "./azure/wire.ts";
import { httpProvider } from "./http-provider.ts";
import { openaiWire } from "./openai/wire.ts";
import { sandboxProvider } from "./sandbox/provider.ts";

/** The providers over one way out: the egress guard's dispatcher, in tests any other. */
export function createProviders(dispatcher: Dispatcher): Readonly<Partial<Record<ProviderKind, Provider>>> {
  return {
    openai: httpProvider(openaiWire, dispatcher),
    azure: httpProvider(azureWire, dispatcher),
    sandbox: sandboxProvider,
  };
}
