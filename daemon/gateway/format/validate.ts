// The checks that hold whatever the provider: the fields that the gateway itself acts on (limits, budgets, routing, streaming) have
// OpenAI's types. Cheap enough for every request. The whole of OpenAI's types and ranges is strict.ts's, for providers whose wire is
// not OpenAI's; an OpenAI wire leaves the rest to the vendor, who knows parameters newer than this program.
import { MagicError } from "#contract/errors.ts";
import type { EmbeddingRequest } from "#daemon/gateway/providers/adapter.ts";
import type { ChatRequest } from "./request.ts";

/** The body as a chat request. Throws `invalid_request` (400) naming the parameter. */
export function chatRequest(body: Record<string, unknown>): ChatRequest {
  checkModel(body);
  if (!Array.isArray(body["messages"])) invalid("messages", "must be an array of messages");
  if (body["messages"].length === 0) invalid("messages", "must hold at least one message");
  for (const [index, message] of body["messages"].entries()) {
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      invalid(`messages[${index}]`, "must be an object");
    }
  }
  for (const key of ["stream", "logprobs", "store", "parallel_tool_calls", "drop_unsupported"]) {
    if (isSet(body[key]) && typeof body[key] !== "boolean") invalid(key, "must be a boolean");
  }
  for (const key of ["max_tokens", "max_completion_tokens", "n"]) {
    const value = body[key];
    if (isSet(value) && !(Number.isSafeInteger(value) && (value as number) >= 1)) {
      invalid(key, "must be an integer of at least 1");
    }
  }
  if (isSet(body["n"]) && (body["n"] as number) > 128) invalid("n", "must be at most 128");
  if (isSet(body["user"]) && typeof body["user"] !== "string") invalid("user", "must be a string");
  const options = body["stream_options"];
  if (isSet(options)) {
    if (typeof options !== "object" || Array.isArray(options)) invalid("stream_options", "must be an object");
    if (body["stream"] !== true) invalid("stream_options", "is only allowed when stream is true");
    const wanted = (options as Record<string, unknown>)["include_usage"];
    if (isSet(wanted) && typeof wanted !== "boolean") invalid("stream_options.include_usage", "must be a boolean");
  }
  return body as unknown as ChatRequest;
}

/** The body as an embeddings request, with OpenAI's types and ranges. Throws `invalid_request` (400) naming the parameter. */
export function embeddingRequest(body: Record<string, unknown>): EmbeddingRequest {
  checkModel(body);
  checkInput(body["input"]);
  const format = body["encoding_format"];
  if (isSet(format) && format !== "float" && format !== "base64") {
    invalid("encoding_format", 'must be "float" or "base64"');
  }
  const dimensions = body["dimensions"];
  if (isSet(dimensions) && !(Number.isSafeInteger(dimensions) && (dimensions as number) >= 1)) {
    invalid("dimensions", "must be an integer of at least 1");
  }
  if (isSet(body["user"]) && typeof body["user"] !== "string") invalid("user", "must be a string");
  return body as unknown as EmbeddingRequest;
}

function checkModel(body: Record<string, unknown>): void {
  const model = body["model"];
  if (!isSet(model)) return;
  if (typeof model !== "string") invalid("model", "must be a string");
  const problem = modelNameProblem(model);
  if (problem) invalid("model", problem);
}

/** Why this can be no model's name, which ends up in headers, URLs, logs and metrics; null where it can. */
export function modelNameProblem(name: string): string | null {
  if (!/^[\x21-\x7e]{1,256}$/.test(name) && !hasSpaces(name))
    return "must be 1 to 256 printable ASCII characters, spaces only between words";
  // In a URL such a part would lead to another model than the one that the lists were asked about.
  return /(?:^|\/)\.\.?(?:\/|$)/.test(name) ? "must not have '.' or '..' between slashes" : null;
}

// As GPT4All names its models. Beside a slash or at an end a server may pass over one, and the lists were asked about another model.
function hasSpaces(name: string): boolean {
  return /^[\x20-\x7e]{1,256}$/.test(name) && !/(?:^|\/) | (?:\/|$)/.test(name);
}

// OpenAI: a string, or 1 to 2048 strings, or token numbers, or lists of token numbers; none of them empty.
function checkInput(input: unknown): void {
  if (typeof input === "string") {
    if (input === "") invalid("input", "must not be empty");
    return;
  }
  if (!Array.isArray(input)) invalid("input", "must be a string, or an array of strings or of token numbers");
  if (input.length === 0 || input.length > 2048) invalid("input", "must hold 1 to 2048 items");
  const tokens = (list: unknown) =>
    Array.isArray(list) && list.length > 0 && list.every((t) => Number.isSafeInteger(t) && t >= 0);
  const fits =
    input.every((item) => typeof item === "string" && item !== "") ||
    tokens(input) ||
    input.every((item) => tokens(item));
  if (!fits) invalid("input", "must hold only non-empty strings, only token numbers, or only lists of token numbers");
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function invalid(param: string, problem: string): never {
  throw invalidRequest(param, `'${param}' ${problem}.`);
}

/** 400 in OpenAI's form, with `param`. */
function invalidRequest(param: string, detail: string): MagicError {
  return new MagicError("invalid_request", detail, {
    problems: [
      { pointer: `/${param.replaceAll(/\[(\d+)\]/g, "/$1").replaceAll(".", "/")}`, code: "invalid_request", detail },
    ],
  });
}
