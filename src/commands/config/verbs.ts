// The verbs of `magic config`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  get: { summary: "Show settings, and where they come from", load: () => import("#commands/config/get.ts") },
  set: { summary: "Set one, yours or the project's", load: () => import("#commands/config/set.ts") },
  unset: { summary: "Remove one", load: () => import("#commands/config/unset.ts") },
};
