// magic dev: serves the project's controllers and reloads them on every save, until q, Ctrl-C or SIGTERM.
import { resolve } from "node:path";
import { invokeController, reloadSession } from "#client/controllers.ts";
import { findDaemon } from "#client/daemon/connect.ts";
import { requireRoot } from "#client/daemon/spawn.ts";
import { stopDaemon } from "#client/daemon/stop.ts";
import type { ApiClient } from "#client/http.ts";
import { followLogs } from "#client/logs.ts";
import { clientOf } from "#commands/client-of.ts";
import { type Context, defineCommand } from "#commands/command.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { type ExitCode, exitCodes } from "#contract/exit-codes.ts";
import type { LogEntry } from "#contract/wire/logs.ts";
import { failureText } from "#output/failure.ts";
import { openInBrowser } from "#output/open.ts";
import type { Output } from "#output/output.ts";
import { askChoice, askText } from "#output/prompt.ts";
import { writeEditorFiles } from "#scaffold/editor.ts";
import { exampleInput, refreshTypesIn } from "#scaffold/examples.ts";
import { controllersFolder, noProject, refuseBackslash } from "#scaffold/project.ts";
import { isJson } from "#shared/json-text.ts";
import { findRoot } from "#shared/paths.ts";
import { type Building, showBuilding } from "./building.ts";
import { type Keys, listenToKeys } from "./keys.ts";
import { devLogLine } from "./log-line.ts";
import { sessionEvents } from "./session.ts";
import { bannerText, invalidText, type Place, placeOf, reloadText } from "./show.ts";

interface Options {
  readonly keep?: boolean;
}

const levels = ["info", "debug", "warn", "error"] as const;

export default defineCommand<Options>({
  configure: (command) =>
    command
      .argument("[name...]", "controllers to serve (default: all)")
      .option("--keep", "leave the daemon running that this command started"),
  handlesInterrupt: true,
  async run(context) {
    const { globals, env, cwd, output, options } = context;
    if (output.format === "json")
      throw new MagicError("usage", "magic dev is a stream: --json has no one document for it.", {
        extra: { next: "Use `--output ndjson`." },
      });
    const root = findRoot(globals.root, env, cwd);
    if (!root.project) throw noProject();
    requireRoot(root.path, env);
    refuseBackslash(root.path);
    const folder = resolve(root.path, controllersFolder(root.path));
    writeEditorFiles(root.path);
    await warnOfMissing(folder, namesIn(context), output);
    // Also in the middle of the session: the first one may have been another command's, and ended with that.
    let ours = false;
    const onStarted = (): void => {
      ours = true;
    };
    const open = (start: boolean): Promise<ApiClient> => clientOf(context, { root: root.path, start, onStarted });
    try {
      return await serve(context, root.path, folder, open);
    } finally {
      if (ours && !options.keep) await stopDaemon(root.path);
    }
  },
});

const namesIn = ({ args }: Context<Options>): string[] => (args[0] ?? []) as string[];

// What is not there may still be made; a slip would be waited for without end.
async function warnOfMissing(folder: string, names: readonly string[], output: Output): Promise<void> {
  if (names.length === 0) return;
  const { chooseControllers } = await import("#scaffold/tests.ts");
  for (const name of names)
    try {
      chooseControllers(folder, [name]);
    } catch (error) {
      if (!isMagicError(error)) throw error;
      output.warn(`${error.message} It is served once it is there. ${error.extra["next"]}`);
    }
}

interface Session {
  client: ApiClient | undefined;
  place: Place | undefined;
  id: string | undefined;
  controllers: string[];
  level: number;
}

async function serve(
  context: Context<Options>,
  root: string,
  folder: string,
  open: (start: boolean) => Promise<ApiClient>,
): Promise<ExitCode> {
  const { output, cwd, globals } = context;
  const end = new AbortController();
  const signal = AbortSignal.any([context.signal, end.signal]);
  const session: Session = { client: undefined, place: undefined, id: undefined, controllers: [], level: 0 };
  let reason = "interrupted";
  const keys = output.interactive
    ? listenToKeys(process.stdin, (key) => {
        if (key === "q") {
          reason = "quit";
          end.abort();
        } else if (key === "\u0003") end.abort();
        else void press(key, session, context, folder, keys);
      })
    : undefined;
  let logs: Promise<void> | undefined;
  let building: Building | undefined;
  try {
    const events = sessionEvents({
      async client(start) {
        const client = await open(start);
        building = showBuilding({ client, folder, only: namesIn(context), output });
        return client;
      },
      folder,
      only: namesIn(context),
      signal,
      onLost(stopped) {
        building?.end();
        output.warn(
          stopped
            ? "The daemon was stopped: waiting for another one for some seconds (`magic daemon start`)."
            : "The daemon is gone: finding or starting it again.",
        );
      },
    });
    for await (const { client, event } of events) {
      building?.end();
      if (event.type === "ready") {
        session.client = client;
        session.id = event.session;
        session.controllers = event.controllers.map(({ name }) => name);
        session.place = placeOf(
          globals.url === undefined ? findDaemon(root) : undefined,
          client.url,
          client.environment,
          cwd,
        );
        const place = session.place;
        const more = {
          url: place.url,
          gateway_url: place.url,
          base_url: place.url,
          gateway_token: place.gatewayToken,
          api_key: place.apiKey,
        };
        output.event({ ...event, ...more }, (paint) =>
          bannerText(event, place, (name) => exampleInput(folder, name), keys !== undefined, paint),
        );
        // Whoever only looks on starts none.
        logs ??= showLogs(() => open(false), session, context, signal).catch((error: Error) =>
          output.warn(`No log lines are shown any more: ${error.message}`),
        );
        refreshTypesIn(folder);
      } else if (event.type === "reload") {
        if (!session.controllers.includes(event.controller)) session.controllers.push(event.controller);
        output.event(event, (paint) => reloadText(event, root, cwd, paint));
        refreshTypesIn(folder, event.controller);
      } else if (event.type === "invalid") output.event(event, (paint) => invalidText(event, root, cwd, paint));
      else if (event.type === "removed") {
        session.controllers = session.controllers.filter((name) => name !== event.controller);
        output.event(event, (paint) => `${paint.yellow("−")} ${paint.bold(event.controller)} was removed`);
      }
    }
  } finally {
    end.abort();
    building?.end();
    keys?.close();
    await logs;
  }
  output.event({ type: "stopped", time: new Date().toISOString(), reason }, (paint) => paint.dim("stopped"));
  return reason === "quit" ? exitCodes.ok : exitCodes.interrupted;
}

// What is new from now on; what the session itself says comes as its events.
async function showLogs(
  client: () => Promise<ApiClient>,
  session: Session,
  { output }: Context<Options>,
  signal: AbortSignal,
): Promise<void> {
  const since = new Date().toISOString();
  for await (const frame of followLogs({ client, filter: { since, level: "debug" }, signal })) {
    if (frame.type === "missed") output.warn(`${frame.lines} log lines were dropped: this terminal was too slow.`);
    if (frame.type !== "line" || !wanted(frame.line, session)) continue;
    const text = devLogLine(frame.line);
    if (text || output.format !== "text") output.event({ type: "log", ...frame.line }, text);
  }
}

const weight: Readonly<Record<string, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

function wanted(line: LogEntry, { level }: Session): boolean {
  return (weight[line.level] ?? 1) >= (weight[levels[level] ?? "info"] ?? 1);
}

async function press(
  key: string,
  session: Session,
  context: Context<Options>,
  folder: string,
  keys: Keys | undefined,
): Promise<void> {
  const { output } = context;
  const { client, id, place } = session;
  if (!client || !place) return;
  try {
    if (key === "r" && id !== undefined) await reloadSession(client, id);
    if (key === "c") process.stdout.write("\u001b[2J\u001b[3J\u001b[H");
    if (key === "o") await openInBrowser(`${place.url}/docs`);
    if (key === "l") {
      session.level = (session.level + 1) % levels.length;
      output.note(`log level: ${levels[session.level]} and above`);
    }
    if (key === "i") await keys?.paused(() => invoke(client, session.controllers, context, folder));
  } catch (error) {
    // Ctrl-C at a question takes back the question.
    if (!isMagicError(error) || error.code !== "interrupted") output.note(failureText(error, output.paint.enabled));
  }
}

async function invoke(client: ApiClient, names: string[], { output }: Context<Options>, folder: string): Promise<void> {
  const [first] = names;
  if (first === undefined)
    throw new MagicError("not_found", "There is no controller to invoke yet.", {
      extra: { next: "Make one with `magic scaffold --name hello`." },
    });
  const name =
    names.length === 1
      ? first
      : await askChoice(
          "Which controller?",
          names.map((value) => ({ value, name: value })),
        );
  const problem = (given: string) => (isJson(given) ? undefined : 'It is not JSON, such as {"key": "value"}.');
  const text = await askText(`Input of ${name}`, JSON.stringify(exampleInput(folder, name)), problem);
  const answer = await invokeController(client, { name, input: JSON.parse(text) });
  output.note(
    `${JSON.stringify(answer.output, null, 2)}\n${output.paint.dim(`${answer.duration_ms} ms, ${answer.request_id}`)}`,
  );
}
