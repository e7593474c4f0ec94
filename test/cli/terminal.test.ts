// Commands on a terminal of their own, below a shell: `magic dev`, and those that ask.
import { spawn, spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { readRuntimeFile } from "#client/daemon/files.ts";
import { isSameProcess } from "#shared/process-identity.ts";
import { asOlderNode } from "../process/older-node.ts";
import { createSandbox, program, type Sandbox } from "./magic.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let box: Sandbox;
beforeAll(async () => {
  box = createSandbox();
  await box.magic(["scaffold", "--name", "hello"]);
  await box.magic(["config", "set", "daemon.port", "0"]);
});
afterAll(() => box.dispose());

/** A terminal that exists until it is closed; `until` awaits a text that comes after those already awaited, pressing a key again and again. */
function openTerminal() {
  const child = spawn("script", ["-qec", "bash --norc -i", "/dev/null"], { cwd: box.folder, env: box.env });
  let screen = "";
  child.stdout.on("data", (data: Buffer) => {
    screen += data.toString("utf8");
  });
  return {
    type: (keys: string) => child.stdin.write(keys),
    async until(text: string, key = "") {
      const look = () => {
        child.stdin.write(key);
        expect(screen).toContain(text);
      };
      await vi.waitFor(look, { timeout: 60_000, interval: 300 });
      screen = screen.slice(screen.indexOf(text) + text.length);
    },
    close: () => child.kill("SIGKILL"),
  };
}

/** Ctrl-Z behind what was typed, then `fg`, which shows this. */
async function stopAndGoOn(terminal: ReturnType<typeof openTerminal>, typed: string, shown: string): Promise<void> {
  terminal.type(`${typed}\u001a`);
  await terminal.until("Stopped");
  terminal.type("fg\n");
  await terminal.until(shown);
}

const onTerminal = test.skipIf(spawnSync("script", ["--version"]).error !== undefined || process.platform !== "linux");

onTerminal(
  "a question goes on after Ctrl-Z and fg, asks again where an answer will not do, and ends at Ctrl-D",
  async () => {
    const terminal = openTerminal();
    onTestFinished(() => void terminal.close());
    terminal.type(`${process.execPath} ${program} connector new; echo code=$?\n`);
    await terminal.until("The connector's name");
    await stopAndGoOn(terminal, "shop", "connector new");
    terminal.type("\r");
    await terminal.until("Where is the API?");
    terminal.type("\u0004");
    await terminal.until("code interrupted");
    terminal.type(`${process.execPath} ${program} connector new; echo "code=$?"\n`);
    await terminal.until("The connector's name");
    terminal.type("Shop\r");
    await terminal.until("use lower-case letters");
    terminal.type("\u0015\u0004");
    await terminal.until("code=130");
  },
);

onTerminal(
  "Ctrl-Z suspends it, Ctrl-C takes a question back, and where the terminal goes the daemon that it started goes too",
  async () => {
    const terminal = openTerminal();
    terminal.type(`${process.execPath} ${program} dev\n`);
    await terminal.until("quit");
    terminal.type("\u001a");
    await terminal.until("Stopped");
    terminal.type("fg\n");
    await terminal.until("log level", "l");
    terminal.type("i");
    await terminal.until("Input of hello");
    terminal.type("\u0003");
    await terminal.until("log level", "l");
    terminal.type("i");
    await terminal.until("Input of hello");
    const daemon = readRuntimeFile(box.folder);
    terminal.close();
    expect(daemon).toBeDefined();
    await vi.waitFor(() => expect(isSameProcess(daemon?.pid ?? 0, daemon?.pid_started ?? null)).toBe(false), 30_000);
  },
);

onTerminal("while one controller is still built, those that serve already are named", async () => {
  const late = join(box.folder, "controllers", "late");
  await box.magic(["scaffold", "--name", "late"]);
  // A module that is a pipe: the build waits for who writes to it.
  writeFileSync(join(late, "handler.ts"), 'import "./pipe.js";\nexport default () => ({ greeting: "late" });');
  spawnSync("mkfifo", [join(late, "pipe.js")]);
  const terminal = openTerminal();
  onTestFinished(() => {
    terminal.close();
    rmSync(late, { recursive: true });
  });
  terminal.type(`stty cols 120; ${process.execPath} ${program} dev\n`);
  await terminal.until("Building: 1 of 2 controllers serve (hello)");
  writeFileSync(join(late, "pipe.js"), "");
  await terminal.until("quit");
  terminal.type("q");
  await terminal.until("stopped");
});

onTerminal.each([
  ["", []],
  [", by an older Node", ["--import", `'${asOlderNode}'`]],
])("a conversation goes on after Ctrl-Z and fg%s", async (_how, flags) => {
  const terminal = openTerminal();
  onTestFinished(() => void terminal.close());
  terminal.type([process.execPath, ...flags, program, "chat\n"].join(" "));
  await terminal.until("you: ");
  await stopAndGoOn(terminal, "good ", "you: ");
  terminal.type("morning\r");
  await terminal.until("sandbox/echo: 10 + 3 tokens");
  // A daemon that died on the way costs a question.
  process.kill(readRuntimeFile(box.folder)?.pid ?? 0, "SIGKILL");
  terminal.type("lost\r");
  await terminal.until("ask it again");
  // On a machine that is short of CPU one that was killed takes its time to be gone.
  await terminal.until("Started the daemon", "good evening\r");
  await terminal.until("sandbox/echo: ");
  terminal.type("\u0004");
});
