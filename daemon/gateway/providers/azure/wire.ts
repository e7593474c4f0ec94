// Azure OpenAI's v1 API: OpenAI's format behind `/openai/v1`, with `api-key`; the model is the deployment's name.
import { openaiFormat } from "../openai/wire.ts";

export const azureWire = openaiFormat("azure", (target, path) => {
  const base = (target.baseUrl ?? "").replace(/\/+$/, "");
  return {
    url: `${/\/openai\/v1$/.test(base) ? base : `${base}/openai/v1`}${path}`,
    headers: target.credentials.apiKey ? { "api-key": target.credentials.apiKey } : {},
  };
});
