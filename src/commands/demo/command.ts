// magic demo: everything once, in a temporary project, offline: what it prints is what happened.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { InvokeAnswer } from "#client/controllers.ts";
import { stopDaemon } from "#client/daemon/stop.ts";
import { createApiClient } from "#client/http.ts";
import { type Context, defineCommand } from "#commands/command.ts";
import { type Dev, type Magic, magicIn } from "./run.ts";

interface Step {
  readonly title: string;
  readonly duration_ms: number;
  readonly result: unknown;
}

/** One step: what is done, and what is shown of it. */
type Tell = (
  title: string,
  command: string,
  work: () => Promise<{ result: unknown; lines: readonly string[] }>,
) => Promise<void>;

export default defineCommand<{ keep?: boolean }>({
  configure: (command) => command.option("--keep", "leave the project there afterwards"),
  handlesInterrupt: true,
  async run(context) {
    const { output, env, options } = context;
    const started = performance.now();
    const base = mkdtempSync(join(tmpdir(), "magic-demo-"));
    const project = join(base, "project");
    const {
      MAGIC_URL: _url,
      MAGIC_API_KEY: _key,
      MAGIC_ROOT: _root,
      MAGIC_OUTPUT: _output,
      MAGIC_ENVIRONMENT: _environment,
      ...own
    } = env;
    const magic = magicIn(
      base,
      { ...own, MAGIC_HOME: join(base, "home"), MAGIC_ROOT: project, NO_COLOR: "1" },
      context.signal,
    );
    const steps: Step[] = [];
    const tell = narrator(context, steps);
    if (output.format === "text")
      output.event({}, (paint) => `${paint.bold("A tour of magic")} ${paint.dim(`in ${project}, offline`)}`);
    let dev: Dev | undefined;
    try {
      await tour(magic, project, tell, (found) => {
        dev = found;
      });
      await tell("Stop: nothing is left running", "Ctrl-C", async () => {
        const code = await dev?.stop();
        const { stopped } = await stopDaemon(project);
        if (stopped) throw new Error("the daemon outlived magic dev");
        return { result: { exit_code: code }, lines: ["the daemon has ended, its cells with it"] };
      });
    } finally {
      await dev?.stop();
      await stopDaemon(project).catch(() => undefined);
      if (!options.keep) rmSync(base, { recursive: true, force: true, maxRetries: 5 });
    }
    const duration_ms = Math.round(performance.now() - started);
    if (output.format !== "ndjson")
      output.result({ steps, duration_ms, folder: options.keep ? project : null }, (paint) =>
        [
          "",
          `${paint.green("✔")} Done in ${(duration_ms / 1000).toFixed(1)} s${options.keep ? `; the project is in ${project}` : "; the temporary project is removed"}.`,
          `  Your turn:  ${paint.cyan("magic scaffold --name hello")}   then  ${paint.cyan("magic dev")}`,
        ].join("\n"),
      );
  },
});

function narrator({ output, signal }: Context<{ keep?: boolean }>, steps: Step[]): Tell {
  return async (title, command, work) => {
    signal.throwIfAborted();
    const started = performance.now();
    const { result, lines } = await work();
    const step = { title, duration_ms: Math.round(performance.now() - started), result };
    steps.push(step);
    if (output.format === "json") return;
    output.event(step, (paint) =>
      [
        "",
        `${paint.green(`${steps.length}.`)} ${paint.bold(title)} ${paint.dim(`${step.duration_ms} ms`)}`,
        `   ${paint.cyan(`$ ${command}`)}`,
        ...lines.map((line) => `   ${line}`),
      ].join("\n"),
    );
  };
}

interface Ready extends Record<string, unknown> {
  readonly url: string;
  readonly gateway_token: string;
  readonly api_key: string;
}

async function tour(magic: Magic, project: string, tell: Tell, onDev: (dev: Dev) => void): Promise<void> {
  await tell(
    "Scaffold two controllers",
    "magic scaffold --name hello; magic scaffold --name triage --template llm",
    async () => {
      const made = [];
      for (const [name, template] of [
        ["hello", "minimal"],
        ["triage", "llm"],
      ] as const)
        made.push(
          await magic.json<{ files: string[] }>("scaffold", "--root", project, "--name", name, "--template", template),
        );
      await magic.json("config", "set", "daemon.port", "0");
      // What a small model costs, so that the sandbox's answers show how cost is counted.
      await magic.json("config", "set", "gateway.prices", "{ sandbox/echo: { input: 0.15, output: 0.6 } }");
      return { result: made, lines: [`controllers/hello, controllers/triage: ${made[0]?.files.join(", ")}`] };
    },
  );
  await tell("Validate contracts and configuration", "magic validate", async () => {
    const found = await magic.json<{ checked: { file: string }[] }>("validate", project);
    return { result: found, lines: [`${found.checked.length} files, no problems`] };
  });
  const dev = magic.dev();
  onDev(dev);
  let ready: Ready = { url: "", gateway_token: "", api_key: "" };
  await tell("Serve them: the daemon starts, each controller in a locked-down process", "magic dev", async () => {
    ready = await dev.event<Ready>("ready");
    return { result: { url: ready.url }, lines: [`gateway and controllers at ${ready.url}/v1`] };
  });
  const invoke = (name: string, input: object) =>
    magic.json<InvokeAnswer>("invoke", name, "--input", JSON.stringify(input));
  await tell("Invoke one", `magic invoke hello --input '{"name": "Ada"}'`, async () => {
    const answer = await invoke("hello", { name: "Ada" });
    return {
      result: answer,
      lines: [JSON.stringify(answer.output), `${answer.duration_ms} ms, request ${answer.request_id}`],
    };
  });
  const handler = join(project, "controllers", "hello", "handler.ts");
  const source = readFileSync(handler, "utf8");
  await tell(
    "Edit it while it serves: hot reload",
    "sed -i 's/Hello/Good morning/' controllers/hello/handler.ts",
    async () => {
      writeFileSync(handler, source.replace("Hello", "Good morning"));
      const reload = await dev.event<{ duration_ms: number; controller: string }>(
        "reload",
        (event) => event.controller === "hello",
      );
      const answer = await invoke("hello", { name: "Ada" });
      return {
        result: { reload, answer },
        lines: [`live ${Math.round(reload.duration_ms)} ms after the save: ${JSON.stringify(answer.output)}`],
      };
    },
  );
  await tell(
    "Break it: the last good version keeps serving",
    "echo 'oops(' >> controllers/hello/handler.ts",
    async () => {
      writeFileSync(handler, `${source.replace("Hello", "Good morning")}\noops(\n`);
      const invalid = await dev.event<{ problems: { file: string; line: number; message: string }[] }>("invalid");
      const [problem] = invalid.problems;
      const answer = await invoke("hello", { name: "Ada" });
      writeFileSync(handler, source);
      return {
        result: { invalid, answer },
        lines: [`${problem?.file}:${problem?.line} ${problem?.message}`, `still: ${JSON.stringify(answer.output)}`],
      };
    },
  );
  await tell(
    "Ask a model through the gateway, with its cost",
    'curl $URL/v1/chat/completions -d \'{"model": "sandbox/echo", ...}\'',
    async () => {
      const client = createApiClient({ url: ready.url, token: ready.gateway_token, environment: "sandbox" });
      const body = { model: "sandbox/echo", messages: [{ role: "user", content: "Say hello to the world" }] };
      const completion = await client.request<Completion>("POST", "/v1/chat/completions", { body });
      const { usage, choices } = completion;
      return {
        result: completion,
        lines: [
          JSON.stringify(choices[0]?.message.content),
          `${usage.prompt_tokens} + ${usage.completion_tokens} tokens, ${usage.cost_usd} US dollars`,
        ],
      };
    },
  );
  await tell(
    "Follow one request by its id, through controller and gateway",
    "magic invoke triage ...; magic trace REQUEST_ID; magic logs --request REQUEST_ID",
    async () => {
      const answer = await invoke("triage", { text: "My file is gone after saving." });
      const trace = await traceOf(ready, answer.request_id);
      const logs = await magic.json<{ event: string; message?: string }[]>("logs", "--request", answer.request_id);
      return {
        result: { answer, trace, logs },
        lines: [
          `${JSON.stringify(answer.output)}  request ${answer.request_id}`,
          `spans: ${trace.join(" > ") || "none"}`,
          `log: ${logs.map(({ event, message }) => message ?? event).join(", ")}`,
        ],
      };
    },
  );
}

interface Completion {
  readonly choices: readonly { readonly message: { readonly content: string } }[];
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly cost_usd: number };
}

// Spans are written in batches: the newest may take a moment.
async function traceOf({ url, api_key }: Ready, id: string): Promise<string[]> {
  const client = createApiClient({ url, token: api_key, environment: "sandbox" });
  for (let attempt = 0; ; attempt++) {
    try {
      const { spans } = await client.request<{ spans: { name: string }[] }>("GET", `/v1/traces/${id}`);
      return spans.map(({ name }) => name);
    } catch (error) {
      if (attempt > 20) throw error;
      await sleep(100);
    }
  }
}
