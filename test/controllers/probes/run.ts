// Runs the probes in a cell with the layers wanted, and judges what each gained by what the host sees.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createSocket } from "node:dgram";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Cell, type CellOutcome, startCell } from "#daemon/controllers/cell/cell.ts";
import { allLayers, type Layers } from "#daemon/controllers/cell/lockdown/boot.ts";

export const columns: Record<string, Layers> = {
  /** The control: an ordinary child process. */
  none: { kernel: false, seccomp: false, landlock: false, permission: false, realm: false },
  all: allLayers,
  "kernel alone": { kernel: true, seccomp: true, landlock: true, permission: false, realm: false },
  "without the realm": { ...allLayers, realm: false },
  "permission alone": { kernel: false, seccomp: false, landlock: false, permission: true, realm: false },
};

export interface Verdict {
  readonly probe: string;
  readonly gained: boolean;
  readonly detail: string;
}

const code = readFileSync(new URL("./handler.cjs", import.meta.url), "utf8");
const addonFolder = fileURLToPath(new URL("../../../node_modules/@rolldown", import.meta.url));

export async function openTargets() {
  const folder = mkdtempSync(join(tmpdir(), "magic-probe-"));
  // Other users must reach it: the probes also run as nobody.
  chmodSync(folder, 0o777);
  const paths = {
    canary: join(folder, "canary.json"),
    symlink: join(folder, "link.json"),
    victim: join(folder, "victim"),
    out: join(folder, "out"),
    socket: join(folder, "s.sock"),
    script: join(folder, "script.cjs"),
    environ: `/proc/${process.pid}/environ`,
    cmdline: `/proc/${process.pid}/cmdline`,
    passwd: "/etc/passwd",
  };
  writeFileSync(paths.canary, '{"canary":"canary-in-a-file"}');
  writeFileSync(paths.script, "");
  symlinkSync(paths.canary, paths.symlink);
  const answer = (_q: unknown, response: { end(text: string): void }): void => response.end("hello");
  const tcp = createServer(answer).listen(0, "127.0.0.1");
  const unix = createServer(answer).listen(paths.socket);
  const abstract = `magic-probe-${process.pid}`;
  const hidden = createTcp((socket) => socket.end()).listen(`\0${abstract}`);
  const udp = createSocket("udp4").bind(0, "127.0.0.1");
  await Promise.all([tcp, unix, hidden, udp].map((one) => new Promise((done) => one.once("listening", done))));
  const bystander = spawn("sleep", ["300"], { stdio: "ignore" });
  let signals = 0;
  const onSignal = (): void => void signals++;
  process.on("SIGUSR2", onSignal).on("SIGWINCH", onSignal);
  for (const server of [tcp, unix])
    server.on("upgrade", (request, socket) => {
      const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
      const accept = createHash("sha1").update(key).digest("base64");
      const lines = ["HTTP/1.1 101 Switching Protocols", "upgrade: websocket", "connection: upgrade"];
      socket.write(`${lines.join("\r\n")}\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
    });
  return {
    folder,
    input: {
      paths,
      port: (tcp.address() as AddressInfo).port,
      udp: udp.address().port,
      abstract,
      parent: process.pid,
      bystander: bystander.pid,
      node: process.execPath,
      addon: findAddon(),
    },
    prepare() {
      writeFileSync(paths.victim, "victim");
      chmodSync(paths.victim, 0o600);
      rmSync(`${paths.victim}.moved`, { force: true });
      for (const name of readdirSync(folder))
        if (name.startsWith("out")) rmSync(join(folder, name), { recursive: true, force: true });
    },
    /** What a change of the host's files shows, whatever the probe says. */
    touched(): boolean {
      const { mode, mtimeMs, size } = existsSync(paths.victim)
        ? statSync(paths.victim)
        : { mode: 0, mtimeMs: 0, size: 0 };
      return (
        existsSync(paths.out) ||
        (mode & 0o777) !== 0o600 ||
        mtimeMs < 10_000 ||
        size !== 6 ||
        readFileSync(paths.victim, "utf8") !== "victim"
      );
    },
    signals: () => signals,
    close() {
      process.off("SIGUSR2", onSignal).off("SIGWINCH", onSignal);
      bystander.kill();
      for (const server of [tcp, unix, hidden, udp]) server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Targets = Awaited<ReturnType<typeof openTargets>>;

function findAddon(): string {
  const entries = existsSync(addonFolder) ? readdirSync(addonFolder, { recursive: true }) : [];
  const name = entries.map(String).find((entry) => entry.endsWith(".node"));
  return name ? join(addonFolder, name) : "/nonexistent.node";
}

async function loadCell(layers: Layers): Promise<Cell> {
  const cell = await startCell(layers);
  const options = { controller: "probe", version: "1.0.0", filename: "probe.magic.js", memoryBytes: 256 * 2 ** 20 };
  await cell.load(options, code, () => {});
  return cell;
}

const denies = { call: () => Promise.reject(new Error("capability_denied")), close() {} };

async function ask(cell: Cell, input: object): Promise<unknown> {
  const message = { input, id: "req_probe", deadline: Date.now() + 5_000, environment: "sandbox" };
  const outcome = new Promise<CellOutcome>((onEnd, onGone) => {
    cell.invoke({ message, broker: () => denies, onLog: () => {}, onEnd, onGone });
  });
  const result = await Promise.race([
    outcome,
    new Promise<never>((_ok, no) => setTimeout(() => no(new Error("the cell does not answer")), 4_000).unref()),
  ]);
  return result.ok ? (JSON.parse(String(result.output)) as unknown) : { refused: result.error.message };
}

/** All probes, or those that `pick` wants, one after another in a column's cell; a cell that died is replaced. */
export async function runProbes(
  targets: Targets,
  layers: Layers,
  pick: (name: string, at: number) => boolean,
): Promise<Map<string, Verdict>> {
  process.env["MAGIC_PROBE_CANARY"] = "canary-in-the-environment";
  let cell = await loadCell(layers);
  const all = (await ask(cell, { list: true })) as string[];
  const verdicts = new Map<string, Verdict>();
  for (const [at, probe] of all.entries()) {
    if (!pick(probe, at)) continue;
    targets.prepare();
    const before = targets.signals();
    let gained = false;
    let detail: string;
    try {
      const answer = (await ask(cell, { ...targets.input, probe })) as { gained?: string; refused?: string };
      detail = answer.gained ?? answer.refused ?? "";
      // A file is written when it is there: what the probe believes does not count.
      gained = answer.gained !== undefined && !/^(write|change) by/.test(probe);
    } catch (error) {
      // Ended by the kernel for what it tried, or it ended itself, which is its own loss.
      detail = (error as Error).message;
      gained = /exit code [07]\b/.test(detail) && /^(exit|execve)$/.test(probe);
      cell.kill("killed", "gone");
      await cell.gone;
      cell = await loadCell(layers);
    }
    if (targets.touched() || targets.signals() > before) gained = true;
    verdicts.set(probe, { probe, gained, detail });
  }
  cell.kill("killed", "done");
  await cell.gone;
  return verdicts;
}

/** Attacks on nobody but the cell itself. In a whole cell all but the first two fail too; a layer alone need not stop them. */
export const harmless = new Set([
  ...["exit", "abort", "native syntax", "report", "active handles", "umask", "async hook resource"],
  ...["inspector session", "environment by report"],
]);

/** What a process of its own and Node's permission model alone are known to let through: why they are called weak. */
export const beyondPermission =
  /^(signal |look by realpath|look by exists|write by (stream|sqlite\w*)|listen |udp|syscall )/;
