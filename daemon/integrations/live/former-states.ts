// How far syncs into HTTP endpoints have come lay in files of the root, `syncs/<id>.json`: the store takes it over.
import { readdir, readFile, rm } from "node:fs/promises";
import { basename, extname, join } from "node:path";
import type { Storage } from "#daemon/storage/storage.ts";
import type { Logger } from "#daemon/telemetry/log.ts";

/** What the store knows already stands; files of syncs that it does not know, and such as cannot be read, stay. */
export async function takeOverStates(stateFolder: string, { units }: Storage, logger: Logger): Promise<void> {
  const folder = join(stateFolder, "syncs");
  for (const name of await readdir(folder).catch(() => [])) {
    if (extname(name) !== ".json") continue;
    const file = join(folder, name);
    const sync_id = basename(name, ".json");
    try {
      if ((await units.sync.get({ id: sync_id, environment: "live" })) === null) continue;
      const { streams } = JSON.parse(await readFile(file, "utf8")) as { streams: Record<string, unknown> };
      for (const [stream, committed] of Object.entries(streams))
        await units.sync.keepState({ sync_id, stream, body: JSON.stringify(committed), revision: 0 });
      await rm(file);
    } catch (error) {
      logger.warn("sync.state_left", { file, detail: String(error) });
    }
  }
}
