// Commands run in this process, against daemons that are none: what no real one does when it is wanted.
import { execFileSync } from "node:child_process";
import { readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import { allowedPrivate, readConnector } from "#client/connectors/store.ts";
import {
  deleteController,
  getController,
  invokeController,
  promoteController,
  rollbackController,
} from "#client/controllers.ts";
import { streamChat } from "#client/gateway/chat.ts";
import { createApiClient } from "#client/http.ts";
import { syncIdOf } from "#client/syncs/state-file.ts";
import chat from "#commands/chat.ts";
import type { CommandModule } from "#commands/command.ts";
import { oneSetting } from "#commands/config/settings.ts";
import authorize from "#commands/connection/authorize.ts";
import create from "#commands/connection/create.ts";
import { getCommand } from "#commands/credential-verbs.ts";
import { bannerText, placeOf } from "#commands/dev/show.ts";
import models from "#commands/model/list.ts";
import trigger from "#commands/sync/trigger.ts";
import watch from "#commands/sync/watch.ts";
import listenTo from "#commands/webhook/listen.ts";
import { createOutput } from "#output/create.ts";
import { openInBrowser } from "#output/open.ts";
import type { Format, Streams } from "#output/output.ts";
import { createPaint } from "#output/paint.ts";
import { controllersFolder } from "#scaffold/project.ts";
import { listen } from "#test/listen.ts";
import { temporaryFolder } from "#test/temporary.ts";

async function daemon(listener: RequestListener): Promise<string> {
  const answering: RequestListener = (request, response) =>
    listener(request, response.setHeader("x-request-id", "req_1"));
  const { origin, close } = await listen(createServer(answering));
  onTestFinished(close);
  return origin;
}

interface Line {
  readonly args?: readonly string[];
  readonly options?: object;
  readonly url?: string;
  readonly format?: Format;
}

/** Runs it as main.ts does; `said` is what has come on stdout so far, `noted` on stderr. */
function run(command: CommandModule<never>, { args = [], options = {}, url, format = "text" }: Line) {
  const controller = new AbortController();
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  let said = "";
  stdout.on("data", (text) => {
    said += text;
  });
  let noted = "";
  stderr.on("data", (text) => {
    noted += text;
  });
  const streams = { stdout, stderr, stdin: process.stdin } as unknown as Streams;
  const output = createOutput({ format, quiet: false, env: {}, streams });
  const globals = { format, live: true, url, root: undefined, quiet: false };
  const ended = command.run({
    ...{ args, options, globals, output, env: { MAGIC_API_KEY: "sk_live_x" }, cwd: "/", registry: [] },
    signal: controller.signal,
    need: async (wanted: Record<string, { value: unknown }>) =>
      Object.fromEntries(Object.entries(wanted).map(([name, { value }]) => [name, value])),
  } as never);
  return { ended: Promise.resolve(ended), said: () => said, noted: () => noted, interrupt: () => controller.abort() };
}

test("a command that waits for the daemon's answer is interrupted at once", async () => {
  let asked = 0;
  const url = await daemon(() => asked++);
  const running = [
    run(create as CommandModule<never>, { url, options: { provider: "salesforce" } }),
    run(authorize as CommandModule<never>, { url, args: ["conn_1"] }),
    run(trigger as CommandModule<never>, { url, args: ["sync_1"] }),
    run(watch as CommandModule<never>, { url, args: ["sync_1"] }),
  ];
  await vi.waitFor(() => expect(asked).toBe(running.length));
  for (const { interrupt } of running) interrupt();
  for (const { ended } of running) await expect(ended).rejects.toMatchObject({ code: "interrupted" });
});

test("the run that was waited for is a line of ndjson", async () => {
  const rejected = { id: "rej_1", key: "7", column: null, reason: "too long" };
  const run_ = { id: "run_1", sync: "sync_1", status: "completed", records_rejected: 1, warnings: [] };
  const url = await daemon(({ url: path = "" }, response) =>
    response
      .setHeader("content-type", "application/json")
      .end(JSON.stringify(path.includes("rejects") ? { data: [rejected] } : run_)),
  );
  const line = { url, args: ["sync_1"], options: { wait: true }, format: "ndjson" } as const;
  const { ended, said } = run(trigger as CommandModule<never>, line);
  await ended;
  expect(said().match(/\n/g)).toHaveLength(1);
  expect(JSON.parse(said())).toMatchObject({ id: "run_1", rejects: [{ key: "7", reason: "too long" }] });
});

test("a provider of which no model is known is answered with those of which there are some", async () => {
  const data = ["openai", "magic", "openai"].map((owned_by, n) => ({
    id: `${n}`,
    kind: "model",
    owned_by,
    allowed: false,
  }));
  const url = await daemon((_request, response) =>
    response.setHeader("content-type", "application/json").end(JSON.stringify({ data })),
  );
  for (const [provider, note] of [
    ["opnai", "No model of opnai is known; there are those of magic, openai.\n"],
    ["openai", ""],
  ]) {
    const { ended, said, noted } = run(models as CommandModule<never>, { url, options: { provider }, format: "json" });
    await ended;
    expect([JSON.parse(said()).data.length, noted()]).toEqual([note ? 0 : 2, note]);
  }
});

test("a slip in the name of a controller or a connector is answered with the nearest one, whatever was to be done with it", async () => {
  const missing = { code: "controller_not_found", detail: "there is no controller triag", status: 404 };
  const url = await daemon(({ url: path = "" }, response) => {
    const listed = path === "/v1/controllers";
    response.writeHead(listed ? 200 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify(listed ? { data: [{ name: "triage" }] } : missing));
  });
  const client = createApiClient({ url, token: "x", environment: "sandbox" });
  const asked = [
    () => invokeController(client, { name: "triag", input: {} }),
    () => getController(client, "triag"),
    () => promoteController(client, "triag", "latest", "1.0.0", undefined),
    () => rollbackController(client, "triag"),
    () => deleteController(client, "triag"),
  ];
  for (const ask of asked)
    await expect(ask()).rejects.toMatchObject({ code: missing.code, extra: { next: "Did you mean triage?" } });
  const connector = readConnector(temporaryFolder(), "strpe");
  await expect(connector).rejects.toMatchObject({ code: "not_found", extra: { next: "Did you mean stripe?" } });
});

test("what nests by the thousand ends no webhook listen", async () => {
  const listening = run(listenTo as CommandModule<never>, { options: { secret: "whsec_AAAA" } });
  await vi.waitFor(() => expect(listening.said()).toContain("Listening on http://"));
  const [address = ""] = /http:\S+/.exec(listening.said()) ?? [];
  const deep = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
  expect((await fetch(address, { method: "POST", body: deep })).status).toBe(400);
  await vi.waitFor(() => expect(listening.said()).toContain(deep));
  listening.interrupt();
  await listening.ended;
});

test("webhook listen refuses a secret that nothing can be signed with", async () => {
  for (const secret of ["", "whsec_", "@secret.txt"])
    await expect(run(listenTo as CommandModule<never>, { options: { secret } }).ended) //
      .rejects.toMatchObject({ code: "usage", extra: { next: expect.stringContaining("webhook roll") } });
});

test("webhook listen subscribes to nothing beside a webhook that exists", async () => {
  await expect(
    run(listenTo as CommandModule<never>, { options: { secret: "whsec_AAAA", events: "sync.failed" } }).ended,
  ) //
    .rejects.toMatchObject({ code: "usage", message: expect.stringContaining("--events") });
});

test("an id that would climb to another path is asked for nowhere", async () => {
  for (const id of ["", ".."])
    await expect(run(getCommand("key") as CommandModule<never>, { url: "http://127.0.0.1:9", args: [id] }).ended) //
      .rejects.toMatchObject({ code: "usage" });
});

test("an answer that breaks off on the way is the other side's error", async () => {
  const url = await daemon(({ socket }, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write('data: {"choices":[{"delta":{"content":"He"}}]}\n\n', () => setTimeout(() => socket.destroy(), 20));
  });
  const client = createApiClient({ url, token: undefined, environment: "sandbox" });
  const pieces: string[] = [];
  const chat = streamChat(client, {}, (text) => pieces.push(text), new AbortController().signal);
  await expect(chat).rejects.toMatchObject({ code: "upstream_error" });
  expect(pieces).toEqual(["He"]);
});

test.each([
  [[{ refusal: "I may " }, { refusal: "not." }], "stop", "I may not.\n", "\\?/\\?: "],
  [[{ content: "half an" }], "length", "half an\n", "warning: The answer is cut off"],
  [[{ content: "" }], "content_filter", "\n", "warning: The provider's filter"],
  [[{ content: "whole" }], "stop", "whole\n", "\\?/\\?: "],
])("chat shows why there is no answer, or not all of it: %j, %s", async (deltas, finish_reason, shown, warned) => {
  const url = await daemon((_request, response) => {
    const choices = [...deltas.map((delta) => ({ delta })), { delta: {}, finish_reason }];
    const text = choices.map((choice) => `data: ${JSON.stringify({ choices: [choice] })}\n\n`).join("");
    response.writeHead(200, { "content-type": "text/event-stream" }).end(`${text}data: [DONE]\n\n`);
  });
  const asked = run(chat as CommandModule<never>, { url, args: ["hi"] });
  await asked.ended;
  expect(asked.said()).toBe(shown);
  expect(asked.noted()).toMatch(new RegExp(`^${warned}`));
});

test("a state file that mktemp has made names a sync as a missing one does; anything else is left alone", async () => {
  const folder = temporaryFolder();
  const [empty, other] = [join(folder, "empty"), join(folder, "other")];
  writeFileSync(empty, "");
  writeFileSync(other, "null");
  const id = await syncIdOf(empty);
  expect(id).toMatch(/^sync_/);
  expect(await syncIdOf(empty)).toBe(id);
  await expect(syncIdOf(other)).rejects.toMatchObject({ code: "invalid_request" });

  const [link, device] = [join(folder, "link"), join(folder, "device")];
  writeFileSync(empty, "");
  symlinkSync(empty, link);
  expect(await syncIdOf(link)).toBe(await syncIdOf(empty));
  symlinkSync("/dev/null", device);
  await expect(syncIdOf(device)).rejects.toMatchObject({ code: "invalid_request" });
  execFileSync("mkfifo", [join(folder, "pipe")]);
  await expect(syncIdOf(join(folder, "pipe"))).rejects.toMatchObject({ code: "invalid_request" });
});

test("of several first runs at once with one new state file one names the sync", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "state.json");
  const ids = await Promise.all(Array.from({ length: 8 }, () => syncIdOf(path)));
  expect(new Set([...ids, await syncIdOf(path)]).size).toBe(1);
  expect(readdirSync(folder)).toEqual(["state.json"]);
});

test("the line that dev offers to paste is one command, in which a key that is not known is a variable", () => {
  const ready = { type: "ready", folder: "/x", controllers: [{ name: "a", version: "1.0.0" }], invalid: [] } as never;
  const place = placeOf(undefined, "http://127.0.0.1:1", "sandbox", "/x");
  const banner = bannerText(ready, place, () => ({ text: "it's" }), false, createPaint(false));
  const line = /curl.*/.exec(banner)?.[0] ?? "";
  const env = { ...process.env, MAGIC_API_KEY: "sk_1" };
  const words = execFileSync("bash", ["-c", `curl() { printf '%s\\n' "$@"; }; ${line}`], { env, encoding: "utf8" });
  expect(words.split("\n")).toEqual(
    expect.arrayContaining(["Authorization: Bearer sk_1", '{"input":{"text":"it\'s"}}']),
  );
});

test("dev offers to make a first controller where there is none, not where none is valid", () => {
  const banner = (invalid: string[]) => {
    const ready = { type: "ready", folder: "/x", controllers: [], invalid } as never;
    return bannerText(
      ready,
      placeOf(undefined, "http://127.0.0.1:1", "sandbox", "/x"),
      String,
      false,
      createPaint(false),
    );
  };
  expect(banner([])).toContain("magic scaffold");
  expect(banner(["a"])).not.toContain("magic scaffold");
});

test("a name that every object has is no setting", () => {
  const globals = { format: "text", live: false, url: undefined, root: undefined, quiet: false } as const;
  for (const key of ["constructor", "toString", "__proto__", "daemon.constructor"])
    expect(() => oneSetting(key, { root: undefined, env: { MAGIC_HOME: "/nowhere" }, globals, argv: [] })).toThrow(
      `There is no setting ${key}.`,
    );
});

test("a magic.yaml that is blank is every default to whoever goes by it, as it is to the daemon", () => {
  const root = temporaryFolder();
  const globals = { format: "text", live: false, url: undefined, root: undefined, quiet: false } as const;
  for (const text of [undefined, "", " \n", "# all: of it\n"]) {
    if (text !== undefined) writeFileSync(join(root, "magic.yaml"), text);
    expect(controllersFolder(root)).toBe("controllers");
    expect(oneSetting("daemon.port", { root, env: {}, globals, argv: [] })).toMatchObject({ origin: "default" });
    expect(allowedPrivate(root, {})).toEqual([]);
  }
  writeFileSync(join(root, "magic.yaml"), "version: 1\ncontrolers: x\n");
  expect(() => controllersFolder(root)).toThrow("magic.yaml:2:1");
  expect(() => oneSetting("daemon.port", { root, env: {}, globals, argv: [] })).toThrow("`controllers`");
  expect(allowedPrivate(root, {})).toEqual([]);
});

test("only a page of the web is opened, whatever a daemon calls one", async () => {
  for (const url of ["file:///etc/passwd", "--help", "javascript:alert(1)"])
    await expect(openInBrowser(url)).rejects.toMatchObject({ code: "usage" });
});
