// OpenAI's types and ranges for a whole chat request, checked before anything is translated: what a translated provider gets must be
// meaningful, and its vendor's error messages would speak of fields that the caller never wrote. Parameters that OpenAI has but a
// provider lacks are providers/support.ts's; unknown ones too.
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import { fields } from "#contract/json-object.ts";
import { pointerParts } from "#contract/json-pointer.ts";
import { chatRequestSchema } from "#contract/wire/chat.ts";
import type { ChatRequest, FunctionDefinition, ToolChoice } from "./request.ts";

export interface RequestProblem {
  /** OpenAI's way to name a place: `messages[0].content[1].image_url.url`. */
  readonly param: string;
  readonly detail: string;
}

let compiled: ReturnType<Ajv2020["compile"]> | null = null;

const judged = new WeakMap<ChatRequest, RequestProblem | null>();

/**
 * The first problem, or null; looked for once a request object, however many candidates ask. Compiles its schema at the first call
 * (some tens of milliseconds).
 */
export function strictProblem(request: ChatRequest): RequestProblem | null {
  let problem = judged.get(request);
  if (problem === undefined) {
    problem = firstProblem(request);
    judged.set(request, problem);
  }
  return problem;
}

function firstProblem(request: ChatRequest): RequestProblem | null {
  compiled ??= new Ajv2020({ strict: false, discriminator: true, validateSchema: false }).compile(chatRequestSchema);
  if (!compiled(request)) {
    const error = compiled.errors?.[0];
    return error ? schemaProblem(error) : { param: "messages", detail: "The request does not fit OpenAI's schema." };
  }
  return messageProblem(request) ?? toolProblem(request) ?? settingProblem(request);
}

function schemaProblem(error: ErrorObject): RequestProblem {
  const missing = error.keyword === "required" ? `/${String(error.params["missingProperty"])}` : "";
  const tag = error.keyword === "discriminator" ? `/${String(error.params["tag"])}` : "";
  const param = paramOf(error.instancePath + missing + tag) || "messages";
  if (missing) return { param, detail: `Missing required parameter: '${param}'.` };
  if (error.keyword === "enum") {
    const values = (error.params["allowedValues"] as unknown[]).map((value) => JSON.stringify(value)).join(", ");
    return { param, detail: `Invalid value for '${param}': must be one of ${values}.` };
  }
  if (tag) return { param, detail: `Invalid value for '${param}': it is not one of the types known here.` };
  return { param, detail: `Invalid value for '${param}': ${error.message ?? "it does not fit"}.` };
}

/** `/messages/0/content` -> `messages[0].content`. */
function paramOf(pointer: string): string {
  let param = "";
  for (const part of pointerParts(pointer)) {
    const key = part.slice(0, 64);
    param += /^\d+$/.test(key) ? `[${key}]` : param ? `.${key}` : key;
  }
  return param;
}

function messageProblem(request: ChatRequest): RequestProblem | null {
  const open = new Set<string>();
  for (const [index, message] of request.messages.entries()) {
    if (message.role === "assistant") {
      for (const call of message.tool_calls ?? []) open.add(call.id);
      const says = message.content ?? message.refusal ?? message.audio ?? message.function_call;
      if (says === undefined || says === null) {
        if (!message.tool_calls?.length) {
          const param = `messages[${index}].content`;
          return { param, detail: `'${param}' may be left out only beside 'tool_calls' or 'function_call'.` };
        }
      }
    } else if (message.role === "tool" && !open.has(message.tool_call_id)) {
      const param = `messages[${index}].tool_call_id`;
      return { param, detail: `'${param}' answers no tool call of an earlier assistant message.` };
    }
  }
  return null;
}

function toolProblem(request: ChatRequest): RequestProblem | null {
  const choice = request.tool_choice;
  if (choice && choice !== "none" && choice !== "auto") {
    if (!request.tools?.length) {
      return { param: "tool_choice", detail: "'tool_choice' is only allowed when 'tools' are given." };
    }
    const known = new Set(request.tools.map(keyOf));
    const unknown = chosen(choice).find((one) => !known.has(keyOf(one)));
    if (unknown) {
      const detail = `'tool_choice' names '${nameOf(unknown)}', which is not among 'tools'.`;
      return { param: "tool_choice", detail };
    }
  }
  const forced = request.function_call;
  if (forced && typeof forced === "object" && !named(request.functions, forced.name)) {
    return {
      param: "function_call",
      detail: `'function_call' names '${forced.name}', which is not among 'functions'.`,
    };
  }
  return null;
}

function chosen(choice: ToolChoice): readonly object[] {
  if (typeof choice === "string") return [];
  return choice.type === "allowed_tools" ? choice.allowed_tools.tools : [choice];
}

// A custom tool is not the function of its name.
function keyOf(tool: object): string {
  return `${fields(tool)["type"]}:${nameOf(tool)}`;
}

// Of a tool, or of what chooses one: `{"type": "function", "function": {"name"}}`.
function nameOf(tool: object): string {
  const { type } = fields(tool);
  return `${fields(fields(tool)[String(type)])["name"] ?? ""}`;
}

function named(definitions: readonly FunctionDefinition[] | null | undefined, name: string): boolean {
  return definitions?.some((definition) => definition.name === name) ?? false;
}

function settingProblem(request: ChatRequest): RequestProblem | null {
  if (request.max_tokens && request.max_completion_tokens) {
    return { param: "max_tokens", detail: "'max_tokens' and 'max_completion_tokens' cannot both be set." };
  }
  if (request.top_logprobs && request.logprobs !== true) {
    return { param: "top_logprobs", detail: "'top_logprobs' needs 'logprobs' to be true." };
  }
  return null;
}
