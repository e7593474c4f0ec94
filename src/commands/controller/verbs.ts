// The verbs of `magic controller`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  list: { summary: "List controllers and what serves", load: () => import("#commands/controller/list.ts") },
  get: { summary: "Show one with its versions", load: () => import("#commands/controller/get.ts") },
  promote: { summary: "Point an alias at a version", load: () => import("#commands/controller/promote.ts") },
  rollback: { summary: "Go back to the version before", load: () => import("#commands/controller/rollback.ts") },
  delete: { summary: "Remove a version, or all of it", load: () => import("#commands/controller/delete.ts") },
};
