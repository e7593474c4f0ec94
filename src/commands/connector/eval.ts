// magic connector eval: the manifests' templates, evaluated; a case a line on stdin, an answer a line on stdout, in order. Who waits for an
// answer before the next case gets it.
import { createInterface } from "node:readline";
import { runConnectorWorker } from "#client/connectors/worker.ts";
import { defineCommand } from "#commands/command.ts";
import type { EvalCase } from "#contract/connector-worker.ts";
import { MagicError } from "#contract/errors.ts";
import { ExactNumber } from "#shared/exact-number.ts";
import { withoutControls } from "#shared/json-text.ts";

type Line = EvalCase | { readonly error: string };

const isCase = (line: Line): line is EvalCase => "template" in line;
const print = (answer: unknown): void => void process.stdout.write(`${withoutControls(exactJson(answer))}\n`);

export default defineCommand({
  configure: (command) =>
    command.addHelpText(
      "after",
      '\nExample:\n  echo \'{"template": "{{ config.a + 1 }}", "context": {"config": {"a": 1}}}\' |\n    magic connector eval --json',
    ),
  async run({ signal }) {
    const next = batches();
    let asked: readonly Line[] = [];
    // Lines that are no case are answered here, in their place.
    const moreCases = async (): Promise<readonly EvalCase[]> => {
      for (;;) {
        asked = await next();
        if (asked.length === 0 || asked.some(isCase)) return asked.filter(isCase);
        asked.forEach(print);
      }
    };
    const cases = await moreCases();
    if (cases.length === 0) return;
    await runConnectorWorker(
      { type: "eval", cases },
      {
        signal,
        moreCases,
        onReply: (reply) => {
          if (reply.type !== "values") return;
          let at = 0;
          for (const line of asked) print(isCase(line) ? reply.values[at++] : line);
        },
      },
    );
  },
});

/** All lines that have come since it was asked last, at least one; none: that was the end. */
function batches(): () => Promise<readonly Line[]> {
  let lines: Line[] = [];
  let ended = false;
  let wake = (): void => {};
  createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })
    .on("line", (line) => {
      if (!line.trim()) return;
      lines.push(parse(line));
      wake();
    })
    .on("close", () => {
      ended = true;
      wake();
    });
  return async () => {
    if (lines.length === 0 && !ended)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    const come = lines;
    lines = [];
    return come;
  };
}

function parse(line: string): Line {
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
