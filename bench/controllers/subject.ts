// The trivial controller that every contender serves.
export const inputSchema = {
  type: "object",
  properties: { text: { type: "string", maxLength: 4000 } },
  required: ["text"],
  additionalProperties: false,
} as const;

export const outputSchema = {
  type: "object",
  properties: { label: { enum: ["bug", "question", "praise"] }, length: { type: "integer", minimum: 0 } },
  required: ["label", "length"],
  additionalProperties: false,
} as const;

export function run(input: { text: string }): { label: string; length: number } {
  return { label: input.text.includes("?") ? "question" : "praise", length: input.text.length };
}

export const handlerSource = `import { defineHandler, reply } from "magic/sdk";
export default defineHandler(async ({ input }) => reply({ label: input.text.includes("?") ? "question" : "praise", length: input.text.length }));
`;
