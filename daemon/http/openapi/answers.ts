// The answers of an operation: its own, and the errors that it can give by its place: in the form of its surface, with the
// headers that come along.
import type { FastifyContextConfig } from "fastify";
import { type TSchema, Type } from "typebox";
import { type ErrorCode, errors } from "#contract/errors.ts";
import { takesIdempotencyKey } from "../idempotency.ts";
import { producedBy } from "../route-config.ts";

export type OperationConfig = FastifyContextConfig;

/** `response` of the operation's schema with descriptions, error answers and headers filled in. */
export function answersOf(
  method: string,
  url: string,
  config: OperationConfig,
  schema: Record<string, unknown>,
): Record<string, unknown> {
  const own = (schema["response"] ?? { 200: Type.Unknown({ description: "Done." }) }) as Record<string, TSchema>;
  const answers: Record<string, Answer> = {};
  for (const [status, answer] of Object.entries(own)) answers[status] = describe(status, answer, config);
  for (const [status, code] of errorsOf(method, url, config))
    answers[status] = besides(errorAnswer(status, code, config), answers[status]);
  // Given before anybody knows which operation was meant: see client-error.ts.
  for (const status of ["408", "431"]) answers[status] = errorAnswer(status, "invalid_request", {});
  return answers;
}

interface Answer {
  readonly description: string;
  readonly content?: object;
  readonly headers?: object;
  readonly type?: string;
}

// A status that an operation has a document of its own for (health's 503) comes as an error, too, from what stands before it.
function besides(error: Answer, own: Answer | undefined): Answer {
  return own ? { ...own, content: { ...own.content, ...error.content } } : error;
}

function describe(status: string, answer: TSchema, config: OperationConfig): Answer {
  const known = answer as TSchema & { description?: string; content?: object };
  const description = known.description ?? (Number(status) < 400 ? "Done." : "An error.");
  if (known.content) return { description, ...known };
  if ((known as { type?: string }).type === "null") return { description, type: "null" };
  const headers = config.deprecated ? { headers: deprecationHeaders } : {};
  const content = Object.fromEntries(producedBy(config).map((media) => [media, { schema: answer }]));
  return { description, content, ...headers };
}

// Which errors an operation can give; of several codes with one status the commonest.
function errorsOf(method: string, url: string, config: OperationConfig): [string, ErrorCode][] {
  const found: [string, ErrorCode][] = (config.fails ?? []).map((code) => [String(errors[code].status), code]);
  found.push(["400", "invalid_request"]);
  if (config.scope || config.errors === "oauth") found.push(["401", "invalid_key"]);
  found.push(["403", config.scope ? "insufficient_scope" : "forbidden_origin"]);
  if (url.includes(":")) found.push(["404", "not_found"]);
  if (config.errors === "openai")
    found.push(
      ["404", "model_not_found"],
      ["409", "idempotency_outcome_unknown"],
      ["422", "idempotency_key_reused"],
      ["502", "upstream_error"],
      ["504", "upstream_timeout"],
    );
  found.push(["406", "not_acceptable"]);
  if (takesIdempotencyKey(method, config)) found.push(["409", "idempotency_in_progress"]);
  // A body is read and checked also where nobody asked for one.
  if (method !== "GET") found.push(["413", "payload_too_large"], ["415", "unsupported_media_type"]);
  if (config.errors !== "openai" && config.errors !== "oauth") found.push(["422", "validation_failed"]);
  if (config.scope) found.push(["429", "rate_limited"]);
  found.push(["500", "internal"], ["503", "draining"], ["507", "storage_full"]);
  return found;
}

function errorAnswer(status: string, code: ErrorCode, config: OperationConfig): Answer {
  const { title, next } = errors[code];
  const form = config.errors ?? "problem";
  const [media = "", name] =
    form === "openai"
      ? ["application/json", "OpenAiError"]
      : form === "oauth"
        ? ["application/json", "OAuthError"]
        : ["application/problem+json", "Problem"];
  const headers = status === "429" ? { headers: rateHeaders } : status === "401" ? { headers: challenge } : {};
  return { description: `${title}. ${next}`, content: { [media]: { schema: { $ref: `${name}#` } } }, ...headers };
}

const rateHeaders = {
  "RateLimit-Policy": { type: "string", description: 'The limit, e.g. `"sandbox";q=60;w=60`.' },
  RateLimit: { type: "string", description: 'What is left of it, e.g. `"sandbox";r=0;t=12`.' },
  "Retry-After": { type: "integer", description: "Seconds to wait." },
};
const challenge = { "WWW-Authenticate": { type: "string", description: "RFC 9110, section 11.6.1." } };
const deprecationHeaders = {
  Deprecation: { type: "string", description: "RFC 9745: since when." },
  Sunset: { type: "string", description: "RFC 8594: when it goes." },
};
