// The verbs of `magic key`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

const shared = () => import("#commands/credential-verbs.ts");

export const verbs: Verbs = {
  create: {
    summary: "Make a new API key",
    load: async () => ({ default: (await shared()).createCommand("key") }),
  },
  list: { summary: "List API keys", load: async () => ({ default: (await shared()).listCommand("key") }) },
  get: { summary: "Show one API key", load: async () => ({ default: (await shared()).getCommand("key") }) },
  roll: {
    summary: "Make a second secret; the old one ends after an overlap",
    load: async () => ({ default: (await shared()).rollCommand("key") }),
  },
  revoke: {
    summary: "End an API key and all of its secrets",
    load: async () => ({ default: (await shared()).revokeCommand("key") }),
  },
};
