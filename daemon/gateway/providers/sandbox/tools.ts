// Which tools the sandbox calls. A forced tool is called; with `auto` the tools that the last user message speaks of, else the first:
// whoever gives a stand-in tools wants to see them called. After a tool's result it answers in text, so that agent loops end.
import type { ChatRequest, FunctionDefinition } from "#daemon/gateway/format/request.ts";

export interface PlannedCall {
  readonly name: string;
  readonly parameters: unknown;
}

/** Empty: answer in text. `legacy`: the deprecated `functions` were used. */
export function plannedCalls(request: ChatRequest, text: string): { calls: PlannedCall[]; legacy: boolean } {
  if (request.tools && request.tools.length > 0) return { calls: fromTools(request, text), legacy: false };
  if (request.functions && request.functions.length > 0) return { calls: fromFunctions(request, text), legacy: true };
  return { calls: [], legacy: false };
}

function fromTools(request: ChatRequest, text: string): PlannedCall[] {
  let tools = (request.tools ?? []).flatMap((tool) => (tool.type === "function" ? [tool.function] : []));
  let choice = request.tool_choice ?? "auto";
  if (typeof choice === "object") {
    if (choice.type === "function") return called(tools, choice.function.name);
    if (choice.type === "custom") return [];
    const allowed = new Set(choice.allowed_tools.tools.map(nameOf));
    tools = tools.filter((tool) => allowed.has(tool.name));
    choice = choice.allowed_tools.mode;
  }
  if (choice === "none" || tools.length === 0) return [];
  if (choice === "auto" && request.messages.at(-1)?.role !== "user") return [];
  const lower = spoken(text);
  const spokenOf = tools.slice(0, MOST_TOOLS).filter((tool) => speaksOf(lower, tool));
  const chosen = spokenOf.length > 0 ? spokenOf : tools.slice(0, 1);
  return (request.parallel_tool_calls === false ? chosen.slice(0, 1) : chosen).map(planned);
}

function fromFunctions(request: ChatRequest, text: string): PlannedCall[] {
  const functions = request.functions ?? [];
  const choice = request.function_call ?? "auto";
  if (typeof choice === "object") return called(functions, choice.name);
  if (choice === "none" || request.messages.at(-1)?.role !== "user") return [];
  const lower = spoken(text);
  const chosen = functions.slice(0, MOST_TOOLS).find((definition) => speaksOf(lower, definition)) ?? functions[0];
  return chosen ? [planned(chosen)] : [];
}

function called(definitions: readonly FunctionDefinition[], name: string): PlannedCall[] {
  return definitions
    .filter((definition) => definition.name === name)
    .slice(0, 1)
    .map(planned);
}

function planned(definition: FunctionDefinition): PlannedCall {
  return { name: definition.name, parameters: definition.parameters ?? { type: "object", properties: {} } };
}

function nameOf(tool: Readonly<Record<string, unknown>>): unknown {
  return (tool["function"] as { name?: unknown } | undefined)?.name;
}

/** Among which it is looked for those that the message speaks of, and characters of the message: more than any conversation has. */
const MOST_TOOLS = 1_000;
const MOST_TEXT = 100_000;

function spoken(text: string): string {
  return text.slice(0, MOST_TEXT).toLowerCase();
}

const fillers = new Set(["get", "set", "the", "for", "and", "run", "all", "new", "with"]);

// The tool's whole name, or a word of it, stands in the message.
function speaksOf(lower: string, tool: FunctionDefinition): boolean {
  if (lower.includes(tool.name.toLowerCase())) return true;
  const parts = tool.name
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return parts.some((part) => part.length > 2 && !fillers.has(part) && lower.includes(part));
}
