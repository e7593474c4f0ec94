// The verbs of `magic audit`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  list: { summary: "Show who did what, newest first", load: () => import("./list.ts") },
  verify: { summary: "Prove that no entry was changed or taken out", load: () => import("./verify.ts") },
  export: { summary: "Write every entry, one JSON document a line", load: () => import("./export.ts") },
};
