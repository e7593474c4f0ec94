// The verbs of `magic connector`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  add: { summary: "Take a low-code manifest into the project", load: () => import("#commands/connector/add.ts") },
  test: { summary: "Check a configuration against the vendor", load: () => import("#commands/connector/test.ts") },
  read: { summary: "Print a stream's records", load: () => import("#commands/connector/read.ts") },
  eval: { summary: "Evaluate manifest templates from stdin", load: () => import("#commands/connector/eval.ts") },
};
