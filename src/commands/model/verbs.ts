// The verbs of `magic model`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  list: { summary: "List models with price, context, and why one is not allowed", load: () => import("./list.ts") },
};
