// OpenAI's own specification as a judge of what this gateway gives out: Ajv over ../shared/specs/openai-openapi.json.
import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { sharedPath } from "#test/shared.ts";

type Judge = (value: unknown) => void;

let judges: { completion: Judge; chunk: Judge; embeddings: Judge; models: Judge } | null = null;

/** Null where ../shared is absent. Each judge throws with Ajv's errors. */
export function specification(): typeof judges {
  const path = sharedPath("specs/openai-openapi.json");
  if (!path) return null;
  judges ??= compile(path);
  return judges;
}

function compile(path: string) {
  const document = JSON.parse(readFileSync(path, "utf8")) as unknown;
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  ajv.addSchema(nullable(document) as object, "openai");
  const judge = (name: string): Judge => {
    const check = ajv.getSchema(`openai#/components/schemas/${name}`) as ValidateFunction;
    return (value) => {
      if (!check(value)) throw new Error(`${name}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(value)}`);
    };
  };
  return {
    completion: judge("CreateChatCompletionResponse"),
    chunk: judge("CreateChatCompletionStreamResponse"),
    embeddings: judge("CreateEmbeddingResponse"),
    models: judge("ListModelsResponse"),
  };
}

// The document says 3.1 and still uses OpenAPI 3.0's `nullable`.
function nullable(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(nullable);
  if (typeof node !== "object" || node === null) return node;
  const { nullable: orNull, ...rest } = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, nullable(value)]),
  );
  return orNull === true ? { anyOf: [rest, { type: "null" }] } : rest;
}
