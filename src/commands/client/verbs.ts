// The verbs of `magic client`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

const shared = () => import("#commands/credential-verbs.ts");

export const verbs: Verbs = {
  create: {
    summary: "Make a new client",
    load: async () => ({ default: (await shared()).createCommand("client") }),
  },
  list: { summary: "List clients", load: async () => ({ default: (await shared()).listCommand("client") }) },
  get: { summary: "Show one client", load: async () => ({ default: (await shared()).getCommand("client") }) },
  roll: {
    summary: "Make a second secret; the old one ends after an overlap",
    load: async () => ({ default: (await shared()).rollCommand("client") }),
  },
  revoke: {
    summary: "End a client and all of its secrets",
    load: async () => ({ default: (await shared()).revokeCommand("client") }),
  },
};
