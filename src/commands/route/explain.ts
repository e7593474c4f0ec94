// magic route explain: the decision, every candidate, why the others are out; nobody is called.
import { gatewayClientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { objectValue } from "#commands/option-values.ts";
import type { RouteCandidate, RouteExplanation } from "#contract/wire/route.ts";
import type { Paint } from "#output/paint.ts";
import { table } from "#output/table.ts";

interface Options {
  readonly model?: string;
  readonly input?: string;
}

export default defineCommand<Options>({
  configure: (command) =>
    command
      .option("-m, --model <model>", "a model, an alias or a policy (default: gateway.default)")
      .option("--input <json>", "the chat completion request: JSON, @FILE, or - for standard input"),
  async run(context) {
    const { options, output, signal } = context;
    const input = (await objectValue(options.input, "--input")) ?? {};
    const client = await gatewayClientOf(context);
    const body = { ...(options.model !== undefined && { model: options.model }), input };
    const explained = await client.request<RouteExplanation>("POST", "/v1/route/explain", { body, signal });
    output.result(explained, (paint) => show(explained, paint));
  },
});

function show(explained: RouteExplanation, paint: Paint): string {
  const { decision, asked, policy, strategy } = explained;
  const head = decision
    ? `${paint.bold(asked)} goes to ${paint.green(decision.model)}, at most ${dollars(decision.estimated_cost_usd)}`
    : `${paint.bold(asked)} goes ${paint.red("nowhere")}`;
  const how = policy ? `policy ${policy} (${strategy}), ${explained.retries} retries` : strategy;
  const candidates = table(
    explained.candidates,
    [
      { title: "#", value: ({ rank }) => rank, align: "right" },
      {
        title: "CANDIDATE",
        value: ({ model }) => model,
        paint: (text, row) => (row.eligible ? text : paint.dim(text)),
      },
      { title: "AT MOST", value: (row) => dollars(row.estimated_cost_usd), align: "right" },
      { title: "BREAKER", value: ({ breaker }) => breaker },
      {
        title: "LATENCY",
        value: ({ latency_ms }) => (latency_ms === null ? null : `${latency_ms} ms`),
        align: "right",
      },
      { title: "WHY NOT", value: whyNot, paint: (text) => paint.yellow(text) },
    ],
    paint,
  );
  return `${head}\n${paint.dim(`${how}; about ${explained.prompt_tokens} prompt tokens`)}\n\n${candidates}`;
}

function whyNot({ rule, reason }: RouteCandidate): string | null {
  return rule === null ? null : `${rule}: ${reason ?? ""}`;
}

function dollars(value: number | null): string {
  return value === null ? "unknown" : `$${Number(value.toPrecision(4))}`;
}
