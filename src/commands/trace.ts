// magic trace: the spans of one request as a waterfall.
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import type { Trace, TraceSpan } from "#contract/wire/traces.ts";
import type { Paint } from "#output/paint.ts";

export default defineCommand({
  configure: (command) => command.argument("<request-id>", "the X-Request-Id of an answer"),
  async run(context) {
    const { args, output, signal } = context;
    const client = await clientOf(context);
    const trace = await client.request<Trace>("GET", `/v1/traces/${pathPart(args[0])}`, { signal });
    output.result(trace, (paint) => show(trace, paint));
  },
});

const WIDTH = 40;

function show(trace: Trace, paint: Paint): string {
  const depths = new Map<string, number>();
  const rows = trace.spans.map((span) => {
    const depth = span.parent_span_id === null ? 0 : (depths.get(span.parent_span_id) ?? -1) + 1;
    depths.set(span.span_id, depth);
    return { span, name: `${"  ".repeat(depth)}${span.name}` };
  });
  const longest = Math.max(...rows.map(({ name }) => name.length));
  const lines = rows.flatMap(({ span, name }) => {
    const bar = barOf(trace, span);
    const colour = span.status === "error" ? paint.red : paint.cyan;
    const line = `${name.padEnd(longest)}  ${colour(bar)}  ${span.duration_ms.toFixed(1).padStart(9)} ms`;
    const facts = factsOf(span);
    return facts === "" ? [line] : [line, `${" ".repeat(longest)}  ${paint.dim(facts)}`];
  });
  const head = `${paint.bold(trace.request_id)}  ${trace.started_at}  ${trace.duration_ms.toFixed(1)} ms`;
  return [head, paint.dim(`trace ${trace.trace_id}`), "", ...lines].join("\n");
}

function barOf(trace: Trace, span: TraceSpan): string {
  const whole = Math.max(trace.duration_ms, 0.001);
  const from = Date.parse(span.started_at) - Date.parse(trace.started_at);
  const start = Math.min(WIDTH - 1, Math.max(0, Math.floor((from / whole) * WIDTH)));
  const length = Math.min(WIDTH - start, Math.max(1, Math.round((span.duration_ms / whole) * WIDTH)));
  return `${" ".repeat(start)}${"█".repeat(length)}${" ".repeat(WIDTH - start - length)}`;
}

const shown: Readonly<Record<string, string>> = {
  "magic.cost_usd": "$",
  "gen_ai.usage.input_tokens": "in ",
  "gen_ai.usage.output_tokens": "out ",
  "magic.attempts": "attempts ",
  "magic.first_token_ms": "first token ms ",
  "error.type": "error ",
  "http.response.status_code": "status ",
};

function factsOf({ attributes }: TraceSpan): string {
  return Object.entries(shown)
    .flatMap(([key, label]) => (attributes[key] == null ? [] : [`${label}${attributes[key]}`]))
    .join("  ");
}
