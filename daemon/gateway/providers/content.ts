// Parts of OpenAI messages that several wires translate: texts, data URLs, tool arguments.
import { fields } from "#contract/json-object.ts";
import { objectOf, type TextReader } from "#daemon/gateway/format/exact-json.ts";
import type {
  ChatRequest,
  Content,
  ContentPart,
  FunctionTool,
  JsonSchema,
  Message,
  ToolChoice,
} from "#daemon/gateway/format/request.ts";
import { imageType } from "#daemon/gateway/upstream/image.ts";
import { failure, UpstreamError } from "./failure.ts";
import { dereferenced, modernSchema } from "./json-schema.ts";

/** The text of a message; parts joined with nothing between, refusals count as text. */
export function textOf(content: Content | null | undefined): string {
  if (typeof content === "string") return content;
  let text = "";
  for (const part of content ?? []) {
    if (part.type === "text") text += part.text;
    else if (part.type === "refusal") text += part.refusal;
  }
  return text;
}

/** Always as parts; an empty string is no part. */
export function partsOf(content: Content | null | undefined): readonly ContentPart[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return content ?? [];
}

/** The system's parts as the prompt of a conversation without turns. Throws UpstreamError where there are none either. */
export function somePrompt<Part>(system: Part[]): Part[] {
  if (system.length === 0) throw invalid("messages", "hold nothing but blank texts");
  return system.splice(0);
}

/** A user's turn before a conversation that the assistant begins, for wires that demand one. */
export const OPENING = "(The assistant begins.)";
/** A turn of the assistant's between results and what the user says next, for models that take none without it. */
export const CONTINUING = "(The user goes on.)";

export interface DataUrl {
  readonly mediaType: string;
  /** Base64. */
  readonly data: string;
}

/** Characters before a data URL's comma: of forty million semicolons a list would be made. */
const LONGEST_HEAD = 1000;

/** Reads `data:image/png;base64,...` (RFC 2397); null for other URLs. Throws UpstreamError where it is malformed. */
function dataUrl(url: string, param: string): DataUrl | null {
  if (!url.startsWith("data:")) return null;
  const comma = url.indexOf(",");
  const head = comma < 0 || comma > LONGEST_HEAD ? "" : url.slice(5, comma);
  const [mediaType = "", ...parameters] = head.split(";");
  if (!/^[\w.+-]+\/[\w.+-]+$/.test(mediaType) || !parameters.includes("base64")) {
    throw invalid(param, "is a data URL without a media type or without base64");
  }
  return { mediaType: mediaType.toLowerCase(), data: url.slice(comma + 1) };
}

/** An image's bytes with the media type that they have: services refuse what is declared otherwise, and `image/jpg`. */
export function imageUrl(url: string, param: string): DataUrl | null {
  const read = dataUrl(url, param);
  return read && { ...read, mediaType: typeOf(read) };
}

function typeOf({ mediaType, data }: DataUrl): string {
  return imageType(Buffer.from(data.slice(0, 32), "base64")) ?? mediaType;
}

/** Claude refuses a request with more of them, at Bedrock too; the last ones reach farthest. */
export const MOST_MARKS = 4;

export type CacheMark = { readonly ttl?: "1h" } | null;

/**
 * Up to where the provider may cache the prompt: OpenAI's mark on a part, or `cache_control` on a part, a message or a tool, as Anthropic has it and
 * OpenRouter's and LiteLLM's users write it. Null where there is none.
 */
export function cacheMark(marked: object): CacheMark {
  const { cache_control: control, prompt_cache_breakpoint: own } = marked as Readonly<Record<string, unknown>>;
  const { type, ttl } = fields(control);
  if (type === "ephemeral") return ttl === "1h" ? { ttl } : {};
  return own ? {} : null;
}

/** The marks of a request's functions. */
export function toolMarks(request: ChatRequest): ReadonlyMap<FunctionTool["function"], NonNullable<CacheMark>> {
  const marks = new Map<FunctionTool["function"], NonNullable<CacheMark>>();
  for (const tool of request.tools ?? []) {
    if (tool.type !== "function") continue;
    const mark = cacheMark(tool) ?? cacheMark(tool.function);
    if (mark) marks.set(tool.function, mark);
  }
  return marks;
}

/** The mark of a message, or of the last part of it that has one. */
export function messageMark(message: Message): CacheMark {
  const parts = Array.isArray(message.content) ? (message.content as readonly object[]) : [];
  return cacheMark(message) ?? parts.reduce((mark, part) => cacheMark(part) ?? mark, null as CacheMark);
}

/** A file part's bytes, by its data URL or bare base64 of a PDF. */
export function fileOf(part: ContentPart & { type: "file" }, param: string): DataUrl & { name: string } {
  const given = part.file.file_data ?? "";
  const name = part.file.filename ?? "file.pdf";
  const read = dataUrl(given, `${param}.file_data`) ?? { mediaType: "application/pdf", data: given };
  if (read.data === "") throw invalid(`${param}.file_data`, "is empty");
  return { ...read, mediaType: typeOf(read), name };
}

/** The arguments of an earlier tool call as an object, by what reads the request's texts; what is no object is wrapped, so that history never fails. */
export function argumentsOf(text: string, read: TextReader): Record<string, unknown> {
  if (text.trim() === "") return {};
  const value = read(text);
  return objectOf(value) ?? { value };
}

export interface ToolPlan {
  readonly tools: readonly FunctionTool["function"][];
  /** `named`: exactly this one; null where no tools are given. */
  readonly choice: { mode: "auto" | "none" | "required" } | { mode: "named"; name: string } | null;
}

/** Tools and choice with `allowed_tools` applied. */
export function toolPlan(request: ChatRequest): ToolPlan {
  let tools = onceNamed((request.tools ?? []).flatMap((tool) => (tool.type === "function" ? [tool.function] : [])));
  if (tools.length === 0) return { tools, choice: null };
  const choice: ToolChoice = request.tool_choice ?? "auto";
  if (typeof choice === "string") return { tools, choice: { mode: choice } };
  if (choice.type === "function") return { tools, choice: { mode: "named", name: choice.function.name } };
  if (choice.type === "custom") return { tools, choice: { mode: "auto" } };
  const allowed = new Set(choice.allowed_tools.tools.map((tool) => (tool["function"] as { name?: string })?.name));
  tools = tools.filter((tool) => allowed.has(tool.name));
  return { tools, choice: tools.length > 0 ? { mode: choice.allowed_tools.mode } : null };
}

// Wires of other vendors refuse two tools of one name.
function onceNamed(tools: readonly FunctionTool["function"][]): readonly FunctionTool["function"][] {
  const names = new Set<string>();
  return tools.filter(({ name }) => !names.has(name) && names.add(name));
}

/** The same choice without its demand for a call, as what goes in its place; undefined where that is none at all. */
export function undemanding({ tool_choice: choice }: ChatRequest): ToolChoice | undefined {
  if (typeof choice !== "object" || choice?.type !== "allowed_tools") return undefined;
  return { ...choice, allowed_tools: { ...choice.allowed_tools, mode: "auto" } };
}

/** The answer has to be a call. */
export function demandsCall({ choice }: ToolPlan): boolean {
  return choice?.mode === "required" || choice?.mode === "named";
}

/**
 * The schema that the answer has to keep, described as the request describes the answer where it does not describe itself: other wires have no place of
 * their own for that. Null where the request has no schema.
 */
export function answerSchema({ response_format: wanted }: ChatRequest): JsonSchema | null {
  if (wanted?.type !== "json_schema") return null;
  const { description } = wanted.json_schema;
  const schema = wanted.json_schema.schema ?? { type: "object" };
  return description && !schema["description"] ? { ...schema, description } : schema;
}

/** The schema of a tool's parameters, or of the answer, where the wire demands an object's of today's draft. */
export function objectSchema(given: JsonSchema | null | undefined): JsonSchema {
  if (!given) return { type: "object", properties: {} };
  const schema = modernSchema(dereferenced(given));
  return schema["type"] === "object" ? schema : { ...schema, type: "object" };
}

/** The name of the tool that stands for the answer where a model keeps no schemas by itself: one that the caller's tools do not have. */
export function answerToolName(tools: readonly FunctionTool["function"][]): string {
  let name = "json";
  while (tools.some((tool) => tool.name === name)) name += "_answer";
  return name;
}

/** What is said to a model that keeps no schemas by itself and cannot be made to call a tool either. */
export function jsonInstruction(schema: JsonSchema | null = null): string {
  const kept = schema ? ` It satisfies this JSON schema: ${JSON.stringify(schema)}` : "";
  return `Answer with one JSON object and nothing else: no prose, no code fence.${kept}`;
}

export function stopsOf(request: ChatRequest): readonly string[] {
  const stops = typeof request.stop === "string" ? [request.stop] : (request.stop ?? []);
  return stops.filter((stop) => stop !== "");
}

/** A 400 that names the place. */
export function invalid(param: string, problem: string): UpstreamError {
  return new UpstreamError(failure("invalid", `'${param}' ${problem}.`, { param }));
}
