// The names of span attributes, in one place: OpenTelemetry's GenAI semantic conventions are still moving. Nothing of a prompt or an
// answer is ever among them.
import type { ProviderKind } from "#daemon/gateway/providers/adapter.ts";

export const attribute = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  responseModel: "gen_ai.response.model",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cacheReadTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  errorType: "error.type",
  status: "http.response.status_code",
  // Our own.
  policy: "magic.policy",
  attempts: "magic.attempts",
  cost: "magic.cost_usd",
  stream: "magic.stream",
  firstToken: "magic.first_token_ms",
  controller: "magic.controller",
} as const;

/** The well-known values of `gen_ai.provider.name`. */
export const providerNames: Readonly<Record<ProviderKind, string>> = {
  openai: "openai",
  azure: "azure.ai.openai",
  anthropic: "anthropic",
  google: "gcp.gemini",
  bedrock: "aws.bedrock",
  sandbox: "magic.sandbox",
};
