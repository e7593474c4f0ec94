// Azure OpenAI's v1 API: OpenAI's format behind `/openai/v1`, with `api-key`; the model is the deployment's name.
import { endpointUnder } from "../endpoint.ts";
import { openaiFormat } from "../openai/wire.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { Wire } from "../wire.ts";

export function azureWire(thoughts: ThoughtMemory): Wire {
  return openaiFormat("azure", thoughts, (target, path) => ({
    url: endpointUnder((target.baseUrl ?? "").replace(CLASSIC, "$1"), `/openai/v1${path}`, OWN),
    headers: target.credentials.apiKey ? { "api-key": target.credentials.apiKey } : {},
  }));
}

/** How an address may end that was copied from the portal, or from another client. */
const OWN = /\/openai(\/v1(\/(chat\/completions|responses|embeddings))?)?$/;
/** As it was before v1: a deployment's, or an API's of a version with a date, which v1 refuses. */
const CLASSIC =
  /(\/openai)(\/deployments\/[^/?]+)?(\/(chat\/completions|completions|responses|embeddings))?\/?(\?api-version=\d[\w-]*)?$/;
