// What `magic dev` shows of a session: the banner, a reload with its phases, problems with their lines.
import { relative, resolve } from "node:path";
import type { RuntimeFile } from "#contract/protocol.ts";
import type { DevelopmentEvent } from "#contract/wire/controllers.ts";
import type { Paint } from "#output/paint.ts";
import { problemsText } from "#output/problems.ts";
import { shellWord } from "#output/shell-word.ts";
import { shownPath } from "#shared/paths.ts";

export interface Place {
  readonly url: string;
  readonly apiKey: string;
  readonly gatewayToken: string;
  readonly environment: string;
  readonly cwd: string;
}

type Event<T extends DevelopmentEvent["type"]> = Extract<DevelopmentEvent, { type: T }>;

export function placeOf(
  runtime: Pick<RuntimeFile, "api_key" | "gateway_token"> | undefined,
  url: string,
  environment: string,
  cwd: string,
): Place {
  const hidden = "$MAGIC_API_KEY";
  return {
    url,
    apiKey: runtime?.api_key ?? hidden,
    gatewayToken: runtime?.gateway_token ?? hidden,
    environment,
    cwd,
  };
}

export function bannerText(
  event: Event<"ready">,
  place: Place,
  example: (controller: string) => unknown,
  keys: boolean,
  paint: Paint,
): string {
  const { url, apiKey, gatewayToken, environment, cwd } = place;
  const count = event.controllers.length;
  const named = event.controllers.map(({ name, version }) => `${paint.bold(name)} ${paint.dim(version)}`).join("  ");
  const line = (label: string, value: string) => `  ${paint.green("➜")}  ${label.padEnd(12)} ${value}`;
  const first = event.controllers[0]?.name;
  const none = event.invalid.length > 0 ? "none that is valid yet: see below" : "none yet: magic scaffold --name hello";
  return [
    "",
    `  ${paint.bold(paint.magenta("magic dev"))}  ${paint.dim(`${shownPath(event.folder, cwd)} · ${environment} · ${count === 1 ? "1 controller" : `${count} controllers`}`)}`,
    "",
    line("controllers", count === 0 ? paint.dim(none) : named),
    line("gateway", paint.cyan(`${url}/v1`)),
    line("token", gatewayToken),
    line("api key", apiKey),
    ...(first === undefined ? [] : ["", "  Try it:", "", `  ${curlText(first, example(first), place)}`]),
    ...(keys ? ["", keysText(paint)] : []),
    "",
  ].join("\n");
}

/** One line to paste into a shell: the JSON stands in single quotes, the key, which may be a variable, in double ones. */
function curlText(controller: string, input: unknown, { url, apiKey }: Place): string {
  const body = shellWord(JSON.stringify({ input }));
  return `curl -s ${url}/v1/controllers/${controller}/invoke -H "Authorization: Bearer ${apiKey}" -H 'Content-Type: application/json' -d ${body}`;
}

function keysText(paint: Paint): string {
  const keys = { r: "reload", i: "invoke", l: "log level", c: "clear", o: "open", q: "quit" };
  return `  ${Object.entries(keys)
    .map(([key, what]) => `${paint.bold(key)} ${paint.dim(what)}`)
    .join(paint.dim("  ·  "))}`;
}

export function reloadText(event: Event<"reload">, root: string, cwd: string, paint: Paint): string {
  const { controller, version, duration_ms, phases, changed, time } = event;
  const spent = Object.entries(phases)
    .map(([name, ms]) => `${name.replace(/_ms$/, "")} ${Math.round(ms)}`)
    .join(" · ");
  const shown = changed
    .slice(0, 3)
    .map((file) => relative(cwd, resolve(root, file)))
    .join(", ");
  return `${clock(time, paint)} ${paint.green("↻")} ${paint.bold(controller)} ${paint.dim(version)} live in ${paint.green(`${Math.round(duration_ms)} ms`)} ${paint.dim(`(${spent})`)}${shown ? ` ${paint.dim(shown)}` : ""}`;
}

export function invalidText(event: Event<"invalid">, root: string, cwd: string, paint: Paint): string {
  const { controller, problems, serving, time } = event;
  const after = serving
    ? `${paint.yellow("●")} the last good version, ${serving}, keeps serving`
    : `${paint.red("●")} nothing serves ${controller} yet`;
  const local = problems.map((problem) => ({ ...problem, file: relative(cwd, resolve(root, problem.file)) }));
  return `${clock(time, paint)} ${paint.red("✖")} ${paint.bold(controller)} was not reloaded\n${problemsText(local, paint, cwd)}\n  ${after}`;
}

export function clock(time: string, paint: Paint): string {
  return paint.dim(time.slice(11, 23));
}
