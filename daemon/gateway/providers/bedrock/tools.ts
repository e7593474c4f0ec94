// The tools of a request, and the choice among them, as Converse takes them.
import type { ChatRequest, JsonSchema } from "#daemon/gateway/format/request.ts";
import { withNames } from "../anthropic/member-names.ts";
import { inputSchema, nativeSchema } from "../anthropic/schema.ts";
import {
  answerToolName,
  demandsCall,
  MOST_MARKS,
  objectSchema,
  type ToolPlan,
  toolMarks,
  toolPlan,
} from "../content.ts";
import { inlined } from "../json-schema.ts";
import type { ConverseTurn } from "./messages.ts";
import { isClaude, isNova, markFor, namesTools } from "./models.ts";

export function toolsOf(
  request: ChatRequest,
  turns: readonly ConverseTurn[],
  schema: JsonSchema | null,
  model: string,
  keeps: (schema: JsonSchema) => boolean,
  names: Map<string, ReadonlyMap<string, string>>,
): { tools: object[]; toolChoice?: object; jsonTool?: string; loose: boolean } {
  const plan = toolPlan(request);
  const spec = (name: string, description: string | undefined, json: unknown, strict = false) => ({
    toolSpec: {
      name,
      ...(description?.trim() ? { description } : {}),
      inputSchema: { json },
      ...(strict ? { strict } : {}),
    },
  });
  const inputOf = (name: string, parameters: JsonSchema | null | undefined) => {
    const schema = objectSchema(parameters);
    if (isClaude(model)) return withNames(name, inputSchema(schema), names);
    return isNova(model) ? bareSchema(schema) : schema;
  };
  const given = plan.tools.filter(({ name }) => mayCall(name, plan.choice, model));
  const marks = isClaude(model) ? toolMarks(request) : null;
  let loose = false;
  const tools = given.flatMap((tool): object[] => {
    const input = inputOf(tool.name, tool.parameters);
    const strict = tool.strict === true && keeps(input);
    loose ||= tool.strict === true && !strict;
    const made = spec(tool.name, tool.description, strict ? nativeSchema(input) : input, strict);
    const mark = markFor(marks?.get(tool) ?? null, model);
    return mark ? [made, { cachePoint: { type: "default", ...mark } }] : [made];
  });
  // Where the answer has to be a call of the caller's own tools, the schema says nothing of it.
  if (schema && !demandsCall(plan)) {
    // Here too, for Nova's schemas have none at their top.
    const description = `Give the final answer by calling this tool. ${schema["description"] ?? ""}`.trimEnd();
    const jsonTool = answerToolName(given);
    tools.push(spec(jsonTool, description, inputOf(jsonTool, schema)));
    const only = given.length === 0 && namesTools(model);
    return { tools, toolChoice: only ? { tool: { name: jsonTool } } : { any: {} }, jsonTool, loose };
  }
  // A conversation that has used tools is refused without any: name those of its past.
  if (tools.length === 0) {
    const past = new Set(
      turns.flatMap((turn) => turn.content.map((block) => (block["toolUse"] as { name?: string })?.name)),
    );
    for (const name of past) if (name) tools.push(spec(name, undefined, { type: "object" }));
    return { tools, loose };
  }
  const { choice } = plan;
  if (choice?.mode === "named" && namesTools(model))
    return { tools, toolChoice: { tool: { name: choice.name } }, loose };
  return { tools, toolChoice: demandsCall(plan) ? { any: {} } : { auto: {} }, loose };
}

/** Marks of the prompt's cache beyond the most that are taken: the first ones go. */
export function leaveFewMarks(lists: readonly object[][]): void {
  const isMark = (block: object) => "cachePoint" in block;
  let extra = lists.flat().filter(isMark).length - MOST_MARKS;
  for (const list of extra > 0 ? lists : []) {
    const kept = list.filter((block) => !(isMark(block) && extra-- > 0));
    list.length = 0;
    for (const block of kept) list.push(block);
  }
}

// Nova takes these three at the top of a tool's schema, and refuses a request for any other.
function bareSchema(schema: JsonSchema): JsonSchema {
  const { type, properties, required } = inlined(schema);
  return { type, properties: properties ?? {}, ...(required === undefined ? {} : { required }) };
}

function mayCall(name: string, choice: ToolPlan["choice"], model: string): boolean {
  if (choice?.mode === "named") return namesTools(model) || choice.name === name;
  return choice?.mode !== "none";
}

/** Whether the model has to call. */
export function forces(toolConfig: { toolChoice?: object }): boolean {
  return toolConfig.toolChoice !== undefined && !("auto" in toolConfig.toolChoice);
}
