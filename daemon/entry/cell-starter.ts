// The thread that starts the processes of cells; see daemon/controllers/cell/starter.ts.
import { parentPort } from "node:worker_threads";
import { native } from "#daemon/controllers/cell/native.ts";
import { type StartOrder, type StartReport, startHere } from "#daemon/controllers/cell/starter.ts";

parentPort?.on("message", async ({ id, args, env }: StartOrder) => {
  parentPort?.postMessage(await start(id, args, env));
});

async function start(id: number, args: StartOrder["args"], env: StartOrder["env"]): Promise<StartReport> {
  try {
    const libc = await native();
    if (!libc?.processes) throw new Error("libc starts no process");
    // What it starts begins where it runs itself.
    if (libc.processors) libc.kernel.keepTo(libc.processors.shared, 0);
    return { id, started: startHere(libc, libc.processes, args, env) };
  } catch (error) {
    return { id, failed: (error as Error).message };
  }
}
