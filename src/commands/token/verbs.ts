// The verbs of `magic token`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

const shared = () => import("#commands/credential-verbs.ts");

export const verbs: Verbs = {
  create: { summary: "Make a new gateway token", load: () => import("./create.ts") },
  list: { summary: "List gateway tokens", load: async () => ({ default: (await shared()).listCommand("token") }) },
  get: { summary: "Show one gateway token", load: async () => ({ default: (await shared()).getCommand("token") }) },
  roll: {
    summary: "Make a second secret; the old one ends after an overlap",
    load: async () => ({ default: (await shared()).rollCommand("token") }),
  },
  revoke: {
    summary: "End a gateway token and all of its secrets",
    load: async () => ({ default: (await shared()).revokeCommand("token") }),
  },
};
