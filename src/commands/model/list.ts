// magic model list: every model that can be named here: price, context, allowed or why not.
import { requestPage } from "#client/http.ts";
import { gatewayClientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import type { Paint } from "#output/paint.ts";
import { table } from "#output/table.ts";

interface Options {
  readonly allowed?: boolean;
  readonly provider?: string;
}

interface Model {
  readonly id: string;
  readonly kind: string;
  readonly owned_by: string;
  readonly context_length: number | null;
  readonly price: { readonly input: number; readonly output: number; readonly cache_read: number | null } | null;
  readonly allowed: boolean;
  readonly reason: string | null;
}

export default defineCommand<Options>({
  configure: (command) =>
    command.option("--allowed", "only what may be used").option("--provider <name>", "only this provider's models"),
  async run(context) {
    const { options, output, signal } = context;
    const client = await gatewayClientOf(context);
    const { data } = await requestPage<{ data: readonly Model[] }>(client, "/v1/models", {
      query: { all: true },
      signal,
    });
    const models = data.filter(
      (model) =>
        (!options.allowed || model.allowed) && (options.provider === undefined || model.owned_by === options.provider),
    );
    output.result({ object: "list", data: models }, (paint) => show(models, paint));
    // One whose models nobody has listed, as of a server of one's own, is none the less configured.
    if (options.provider !== undefined && !data.some(({ owned_by: owner }) => owner === options.provider))
      output.note(`No model of ${options.provider} is known; there are those of ${providersOf(data).join(", ")}.`);
  },
});

function providersOf(models: readonly Model[]): string[] {
  return [...new Set(models.map(({ owned_by: owner }) => owner))].sort();
}

function show(models: readonly Model[], paint: Paint): string {
  const dollars = (value: number | undefined) => (value === undefined ? null : `$${value}`);
  return table(
    models,
    [
      { title: "MODEL", value: (model) => model.id, paint: (text, { allowed }) => (allowed ? text : paint.dim(text)) },
      { title: "KIND", value: ({ kind }) => kind },
      { title: "INPUT/M", value: ({ price }) => dollars(price?.input), align: "right" },
      { title: "OUTPUT/M", value: ({ price }) => dollars(price?.output), align: "right" },
      { title: "CONTEXT", value: (model) => model.context_length, align: "right" },
      {
        title: "ALLOWED",
        value: ({ allowed, reason }) => (allowed ? "yes" : `no: ${reason ?? ""}`),
        paint: (text, { allowed }) => (allowed ? paint.green(text) : paint.yellow(text)),
      },
    ],
    paint,
  );
}
