// create, list, get, roll and revoke: the same for keys and clients, and but for create for gateway tokens.
import {
  type CredentialDocument,
  type CredentialNoun,
  createCredential,
  getCredential,
  listCredentials,
  revokeCredential,
  rollCredential,
} from "#client/credentials.ts";
import { defineCommand } from "#commands/command.ts";
import { table } from "#output/table.ts";
import { clientOf } from "./client-of.ts";
import { type GrantOptions, grantOptions, showCredential } from "./credential-options.ts";
import { given, listValue, timeOf, wholeOf } from "./option-values.ts";
import { tellMore } from "./resource-verbs.ts";

/** Its secret is printed this once. */
export const createCommand = (noun: "key" | "client") =>
  defineCommand<GrantOptions>({
    configure: (command) => {
      for (const option of grantOptions()) command.addOption(option);
    },
    async run(context) {
      const { options, globals, output } = context;
      const asked = listValue(options.scopes, "--scopes");
      const { scopes } = await context.need({ scopes: { value: asked, flag: "--scopes <list>" } });
      const body = given({
        name: options.name,
        scopes,
        tier: options.tier,
        expires_at: timeOf(options.expires, "--expires"),
        environment: globals.live ? "live" : undefined,
      });
      const document = await createCredential(await clientOf(context), noun, body);
      output.result(document, showCredential(document));
    },
  });

export const listCommand = (noun: CredentialNoun) =>
  defineCommand<{ limit?: string; startingAfter?: string }>({
    configure: (command) =>
      command
        .option("--limit <n>", "how many at most, 1 to 100 (default 20)")
        .option("--starting-after <id>", "the page behind this one"),
    async run(context) {
      const { options, output } = context;
      const page = await listCredentials(await clientOf(context), noun, {
        limit: wholeOf(options.limit, "--limit", 1),
        starting_after: options.startingAfter,
      });
      output.result(page, (paint) =>
        table(
          page.data,
          [
            { title: "ID", value: ({ id }) => id },
            { title: "NAME", value: ({ name }) => name },
            { title: "ENVIRONMENT", value: ({ environment }) => environment },
            ...(noun === "token"
              ? [
                  { title: "USER", value: ({ user }: CredentialDocument) => user },
                  { title: "TEAM", value: ({ team }: CredentialDocument) => team },
                  { title: "PROJECT", value: ({ project }: CredentialDocument) => project },
                  {
                    title: "BUDGET",
                    value: ({ budget_usd: usd }: CredentialDocument) => (usd == null ? null : `$${usd}`),
                  },
                ]
              : [{ title: "TIER", value: ({ tier }: CredentialDocument) => tier }]),
            {
              title: "LAST USED",
              value: ({ secrets }) =>
                secrets
                  .map((secret) => secret.last_used_at ?? "")
                  .sort()
                  .at(-1) || null,
            },
            { title: "STATE", value: (one) => stateOf(one, Date.now()) },
          ],
          paint,
        ),
      );
      tellMore(output, page);
    },
  });

/** In a word; `now` in milliseconds. */
export function stateOf({ revoked_at, expires_at, secrets }: CredentialDocument, now: number): string {
  if (revoked_at) return "revoked";
  if (expires_at && Date.parse(expires_at) <= now) return "expired";
  return secrets.length > 1 ? "rolling" : "active";
}

export const getCommand = (noun: CredentialNoun) =>
  defineCommand({
    configure: (command) => command.argument("<id>", `the ${noun}'s id`),
    async run(context) {
      const document = await getCredential(await clientOf(context), noun, String(context.args[0]));
      context.output.result(document, showCredential(document));
    },
  });

export const rollCommand = (noun: CredentialNoun) =>
  defineCommand<{ overlap?: string }>({
    configure: (command) =>
      command
        .argument("<id>", `the ${noun}'s id`)
        .option("--overlap <seconds>", "how long the old secret keeps working; 0 ends it at once (default: a day)"),
    async run(context) {
      const overlap = wholeOf(context.options.overlap, "--overlap", 0);
      const document = await rollCredential(await clientOf(context), noun, String(context.args[0]), overlap);
      context.output.result(document, showCredential(document));
    },
  });

export const revokeCommand = (noun: CredentialNoun) =>
  defineCommand({
    configure: (command) => command.argument("<id>", `the ${noun}'s id`),
    async run(context) {
      const id = String(context.args[0]);
      await revokeCredential(await clientOf(context), noun, id);
      context.output.result({ id, revoked: true }, (paint) => `${paint.green("✔")} Revoked ${id}.`);
    },
  });
