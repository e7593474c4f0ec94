// What `magic dev` shows on a terminal until its first event, which comes when everything was built once: what serves already.
import { basename } from "node:path";
import { listControllers } from "#client/controllers.ts";
import type { ApiClient } from "#client/http.ts";
import type { Output } from "#output/output.ts";
import { controllersIn } from "#scaffold/validation.ts";

export interface Building {
  /** Any number of times. */
  end(): void;
}

export interface BuildingOptions {
  readonly client: ApiClient;
  readonly folder: string;
  /** The names that were asked for; all where there are none. */
  readonly only: readonly string[];
  readonly output: Output;
}

/** What is built within it is told by the first event. */
const EVERY_MS = 1_000;
const MOST_NAMES = 3;

export function showBuilding({ client, folder, only, output }: BuildingOptions): Building {
  if (!output.interactive) return { end: () => {} };
  const count = controllersIn(folder).filter((path) => only.length === 0 || only.includes(basename(path))).length;
  const progress = output.progress(`Building ${count === 1 ? "1 controller" : `${count} controllers`}`);
  const timer = setInterval(async () => {
    const known = await listControllers(client).catch(() => []);
    const serving = known.filter(({ development }) => development).map(({ name }) => name);
    if (serving.length === 0) return;
    const named = serving.slice(0, MOST_NAMES).join(", ") + (serving.length > MOST_NAMES ? ", …" : "");
    progress.text(`Building: ${serving.length} of ${count} controllers serve (${named})`, serving.length / count);
  }, EVERY_MS);
  return {
    end() {
      clearInterval(timer);
      progress.done();
    },
  };
}
