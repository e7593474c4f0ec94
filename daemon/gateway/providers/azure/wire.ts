// Azure OpenAI's v1 API: OpenAI's format behind `/openai/v1`, with `api-key`; the model is the deployment's name.
import { endpointUnder } from "../endpoint.ts";
import { openaiFormat } from "../openai/wire.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { Wire } from "../wire.ts";

export function azureWire(thoughts: ThoughtMemory): Wire {
  return openaiFormat("azure", thoughts, (target, path) => ({
    url: endpointUnder(target.baseUrl ?? "", `/openai/v1${path}`, /\/openai(\/v1)?$/),
    headers: target.credentials.apiKey ? { "api-key": target.credentials.apiKey } : {},
  }));
}
