// Every kind of provider, by name.
import type { Dispatcher } from "undici";
import type { Provider, ProviderKind } from "./adapter.ts";
import { anthropicWire } from "./anthropic/wire.ts";
import { azureWire } from "./azure/wire.ts";
import { bedrockWire } from "./bedrock/wire.ts";
import { googleWire } from "./google/wire.ts";
import { httpProvider } from "./http/provider.ts";
import { openaiWire } from "./openai/wire.ts";
import { sandboxProvider } from "./sandbox/provider.ts";
import { type ThoughtMemory, thoughtMemory } from "./thoughts/memory.ts";

/**
 * The providers over one way out: the egress guard's dispatcher, in tests any other. `signatures` may outlive the process; thinking, being
 * part of an answer, is remembered in memory alone. `images` is the way to addresses that callers name. Anthropic's and Bedrock's Claudes take each other's.
 */
export function createProviders(
  dispatcher: Dispatcher,
  signatures: ThoughtMemory = thoughtMemory(),
  images = dispatcher,
): Readonly<Record<ProviderKind, Provider>> {
  const thoughts = thoughtMemory();
  return {
    openai: httpProvider(openaiWire(thoughts), dispatcher),
    anthropic: httpProvider(anthropicWire(thoughts), dispatcher, images),
    azure: httpProvider(azureWire(thoughts), dispatcher),
    bedrock: httpProvider(bedrockWire(thoughts), dispatcher, images),
    google: httpProvider(googleWire(signatures), dispatcher, images),
    sandbox: sandboxProvider,
  };
}
