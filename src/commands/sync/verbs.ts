// The verbs of `magic sync`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  run: { summary: "Move data between two URLs or files, without a daemon", load: () => import("./run.ts") },
};
