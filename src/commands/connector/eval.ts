// magic connector eval: the manifests' templates, evaluated; a case a line on stdin, an answer a line on stdout, in order.
import { createInterface } from "node:readline";
import { runConnectorWorker } from "#client/connectors/worker.ts";
import { defineCommand } from "#commands/command.ts";
import { MagicError } from "#contract/errors.ts";
import { ExactNumber } from "#shared/exact-number.ts";

interface Case {
  readonly template: string;
  readonly context: Readonly<Record<string, unknown>>;
}

export default defineCommand({
  configure: (command) =>
    command.addHelpText(
      "after",
      '\nExample:\n  echo \'{"template": "{{ config.a + 1 }}", "context": {"config": {"a": 1}}}\' | magic connector eval --json',
    ),
  async run({ signal }) {
    const cases: (Case | { readonly error: string })[] = [];
    for await (const line of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY }))
      if (line.trim()) cases.push(parse(line));
    const good = cases.filter((each): each is Case => "template" in each);
    let values: readonly unknown[] = [];
    await runConnectorWorker(
      { type: "eval", cases: good },
      {
        signal,
        onReply: (reply) => {
          if (reply.type === "values") values = reply.values;
        },
      },
    );
    let at = 0;
    for (const each of cases) process.stdout.write(`${exactJson("error" in each ? each : values[at++])}\n`);
  },
});

function parse(line: string): Case | { readonly error: string } {
  try {
    const { template, context = {} } = JSON.parse(line, exact) as { template?: unknown; context?: unknown };
    if (typeof template !== "string" || typeof context !== "object" || context === null)
      throw new MagicError("usage", "a case is {template, context}");
    return { template, context: context as Readonly<Record<string, unknown>> };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

// Integers beyond 2^53 keep their digits, and floats that are whole numbers (5.0) stay floats, on the way in and on the way out.
function exact(_key: string, value: unknown, context?: { source?: string }): unknown {
  const { source } = context ?? {};
  if (typeof value !== "number" || source === undefined) return value;
  if (!/^-?\d+$/.test(source)) return Number.isInteger(value) ? Object(source) : value;
  return Number.isSafeInteger(value) ? value : BigInt(source);
}

function exactJson(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    each instanceof String ? new ExactNumber(each.toString()).toJSON() : each,
  );
}
