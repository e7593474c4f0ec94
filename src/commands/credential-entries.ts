// The verbs of keys, clients and gateway tokens, as --help shows them; their code is loaded when one is chosen.
import type { CredentialNoun } from "#client/credentials.ts";
import type { Verbs } from "#commands/command.ts";

const shared = () => import("#commands/credential-verbs.ts");

/** `one`: what it is called, with its article. */
export function credentialVerbs(noun: CredentialNoun, one: string): Verbs {
  const name = one.replace(/^an? /, "");
  return {
    create: {
      summary: `Make a new ${name}`,
      load: async () => ({
        default:
          noun === "token" ? (await import("#commands/token/create.ts")).default : (await shared()).createCommand(noun),
      }),
    },
    list: { summary: `List ${name}s`, load: async () => ({ default: (await shared()).listCommand(noun) }) },
    get: { summary: `Show one ${name}`, load: async () => ({ default: (await shared()).getCommand(noun) }) },
    roll: {
      summary: "Make a second secret; the old one ends after an overlap",
      load: async () => ({ default: (await shared()).rollCommand(noun) }),
    },
    revoke: {
      summary: `End ${one} and all of its secrets`,
      load: async () => ({ default: (await shared()).revokeCommand(noun) }),
    },
  };
}
