// The verbs of `magic route`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  explain: { summary: "Show where a request would go, why, and what it may cost", load: () => import("./explain.ts") },
};
