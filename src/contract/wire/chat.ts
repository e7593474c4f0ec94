// JSON Schema of OpenAI's chat completion request (its specification, "Create chat completion"): types and ranges. Objects are open:
// unknown members of messages and parts are ignored, unknown parameters are the provider table's to judge.

const text = { type: "string" } as const;
const textOrNull = { type: ["string", "null"] } as const;
const booleanOrNull = { type: ["boolean", "null"] } as const;
const name = { type: "string", pattern: "^[a-zA-Z0-9_-]{1,64}$" } as const;

function range(type: "integer" | "number", minimum: number, maximum: number) {
  return { type: [type, "null"], minimum, maximum } as const;
}

const breakpoint = { type: "object", properties: { mode: { const: "explicit" } }, required: ["mode"] } as const;

function tagged(value: string, properties: object, required: readonly string[]) {
  return { type: "object", properties: { type: { const: value }, ...properties }, required: ["type", ...required] };
}

const textPart = tagged("text", { text, prompt_cache_breakpoint: breakpoint }, ["text"]);
const refusalPart = tagged("refusal", { refusal: text }, ["refusal"]);
const imageUrl = {
  type: "object",
  properties: {
    url: { type: "string", pattern: "^(https?://|data:|gs://)" },
    detail: { enum: ["auto", "low", "high", "original", null] },
  },
  required: ["url"],
};
const userParts = [
  textPart,
  tagged("image_url", { image_url: imageUrl, prompt_cache_breakpoint: breakpoint }, ["image_url"]),
  tagged(
    "input_audio",
    {
      input_audio: {
        type: "object",
        properties: { data: text, format: { enum: ["wav", "mp3"] } },
        required: ["data", "format"],
      },
    },
    ["input_audio"],
  ),
  tagged("file", { file: { type: "object", properties: { filename: text, file_data: text, file_id: text } } }, [
    "file",
  ]),
];

function content(parts: readonly object[], nullable = false) {
  return {
    type: nullable ? ["string", "array", "null"] : ["string", "array"],
    minItems: 1,
    items: { type: "object", discriminator: { propertyName: "type" }, required: ["type"], oneOf: parts },
  };
}

function message(role: string, properties: object, required: readonly string[]) {
  return {
    type: "object",
    properties: { role: { const: role }, name: textOrNull, ...properties },
    required: ["role", ...required],
  };
}

const toolCall = {
  type: "object",
  discriminator: { propertyName: "type" },
  required: ["type"],
  oneOf: [
    tagged(
      "function",
      {
        id: { type: "string", minLength: 1 },
        function: { type: "object", properties: { name: text, arguments: text }, required: ["name", "arguments"] },
      },
      ["id", "function"],
    ),
    tagged(
      "custom",
      {
        id: { type: "string", minLength: 1 },
        custom: { type: "object", properties: { name: text, input: text }, required: ["name", "input"] },
      },
      ["id", "custom"],
    ),
  ],
};

const messages = {
  type: "array",
  minItems: 1,
  items: {
    type: "object",
    discriminator: { propertyName: "role" },
    required: ["role"],
    oneOf: [
      message("system", { content: content([textPart]) }, ["content"]),
      message("developer", { content: content([textPart]) }, ["content"]),
      message("user", { content: content(userParts) }, ["content"]),
      message(
        "assistant",
        {
          content: content([textPart, refusalPart], true),
          refusal: textOrNull,
          audio: { type: ["object", "null"], properties: { id: text }, required: ["id"] },
          reasoning_content: textOrNull,
          tool_calls: { type: ["array", "null"], items: toolCall },
          function_call: {
            type: ["object", "null"],
            properties: { name: text, arguments: text },
            required: ["name", "arguments"],
          },
        },
        [],
      ),
      message("tool", { content: content([textPart]), tool_call_id: { type: "string", minLength: 1 } }, [
        "content",
        "tool_call_id",
      ]),
      message("function", { content: textOrNull, name: text }, ["content", "name"]),
    ],
  },
};

const functionDefinition = {
  type: "object",
  properties: { name, description: textOrNull, parameters: { type: ["object", "null"] }, strict: booleanOrNull },
  required: ["name"],
};

const tools = {
  type: ["array", "null"],
  maxItems: 128,
  items: {
    type: "object",
    discriminator: { propertyName: "type" },
    required: ["type"],
    oneOf: [
      tagged("function", { function: functionDefinition }, ["function"]),
      tagged(
        "custom",
        {
          custom: {
            type: "object",
            properties: { name, description: text, format: { type: "object" } },
            required: ["name"],
          },
        },
        ["custom"],
      ),
    ],
  },
};

const named = { type: "object", properties: { name: text }, required: ["name"] };

const toolChoice = {
  type: ["string", "object", "null"],
  if: { type: "object" },
  // biome-ignore lint/suspicious/noThenProperty: JSON Schema's keyword
  then: {
    discriminator: { propertyName: "type" },
    required: ["type"],
    oneOf: [
      tagged("function", { function: named }, ["function"]),
      tagged("custom", { custom: named }, ["custom"]),
      tagged(
        "allowed_tools",
        {
          allowed_tools: {
            type: "object",
            properties: { mode: { enum: ["auto", "required"] }, tools: { type: "array", items: { type: "object" } } },
            required: ["mode", "tools"],
          },
        },
        ["allowed_tools"],
      ),
    ],
  },
  else: { enum: ["none", "auto", "required", null] },
};

const responseFormat = {
  type: ["object", "null"],
  if: { type: "object" },
  // biome-ignore lint/suspicious/noThenProperty: JSON Schema's keyword
  then: {
    discriminator: { propertyName: "type" },
    required: ["type"],
    oneOf: [
      tagged("text", {}, []),
      tagged("json_object", {}, []),
      tagged(
        "json_schema",
        {
          json_schema: {
            type: "object",
            properties: { name, description: textOrNull, schema: { type: ["object", "null"] }, strict: booleanOrNull },
            required: ["name"],
          },
        },
        ["json_schema"],
      ),
    ],
  },
};

/** JSON Schema 2020-12 (with OpenAPI's `discriminator`) of `POST /v1/chat/completions`. */
export const chatRequestSchema = {
  type: "object",
  required: ["messages"],
  properties: {
    model: { type: ["string", "null"] },
    messages,
    stream: booleanOrNull,
    stream_options: {
      type: ["object", "null"],
      properties: { include_usage: booleanOrNull, include_obfuscation: booleanOrNull },
    },
    tools,
    tool_choice: toolChoice,
    parallel_tool_calls: booleanOrNull,
    functions: { type: ["array", "null"], minItems: 1, maxItems: 128, items: functionDefinition },
    function_call: {
      type: ["string", "object", "null"],
      if: { type: "object" },
      // biome-ignore lint/suspicious/noThenProperty: JSON Schema's keyword
      then: named,
      else: { enum: ["none", "auto", null] },
    },
    response_format: responseFormat,
    max_tokens: { type: ["integer", "null"], minimum: 1 },
    max_completion_tokens: { type: ["integer", "null"], minimum: 1 },
    temperature: range("number", 0, 2),
    top_p: range("number", 0, 1),
    n: range("integer", 1, 128),
    // OpenAI's document wants at least one of a list; OpenAI takes an empty one, as CrewAI sends it.
    stop: {
      type: ["string", "array", "null"],
      maxItems: 4,
      items: text,
    },
    seed: { type: ["integer", "null"] },
    logprobs: booleanOrNull,
    top_logprobs: range("integer", 0, 20),
    logit_bias: { type: ["object", "null"], additionalProperties: { type: "integer", minimum: -100, maximum: 100 } },
    presence_penalty: range("number", -2, 2),
    frequency_penalty: range("number", -2, 2),
    reasoning_effort: { enum: ["none", "minimal", "low", "medium", "high", "xhigh", "max", null] },
    verbosity: { enum: ["low", "medium", "high", null] },
    modalities: { type: ["array", "null"], items: { enum: ["text", "audio"] } },
    audio: { type: ["object", "null"], properties: { voice: {}, format: {} }, required: ["voice", "format"] },
    prediction: {
      type: ["object", "null"],
      properties: { type: { const: "content" }, content: { type: ["string", "array"], items: {} } },
      required: ["type", "content"],
    },
    web_search_options: { type: ["object", "null"] },
    moderation: { type: ["object", "null"] },
    user: textOrNull,
    safety_identifier: { type: ["string", "null"], maxLength: 64 },
    prompt_cache_key: textOrNull,
    prompt_cache_retention: { enum: ["in_memory", "24h", "in-memory", null] },
    prompt_cache_options: { type: ["object", "null"] },
    metadata: {
      type: ["object", "null"],
      maxProperties: 16,
      propertyNames: { maxLength: 64 },
      additionalProperties: { type: "string", maxLength: 512 },
    },
    store: booleanOrNull,
    service_tier: { enum: ["auto", "default", "flex", "scale", "priority", "fast", "ultrafast", null] },
    drop_unsupported: booleanOrNull,
  },
};
