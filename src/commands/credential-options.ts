// What the commands about keys, clients and gateway tokens share: reading options, and showing one credential.
import { Option } from "commander";
import type { CredentialDocument } from "#client/credentials.ts";
import { scopes, tiers } from "#contract/identity.ts";
import type { Paint } from "#output/paint.ts";
import { record } from "#output/table.ts";

export interface GrantOptions {
  readonly scopes?: string;
  readonly name?: string;
  readonly tier?: string;
  readonly expires?: string;
}

/** --scopes, --name, --tier, --expires. */
export function grantOptions(): Option[] {
  return [
    new Option("--scopes <list>", `what it may do, separated by commas: ${scopes.join(", ")}`),
    new Option("--name <name>", "a name for people"),
    new Option("--tier <tier>", "its rate limits (default: the account's)").choices([...tiers]),
    new Option("--expires <time>", "when it ends, e.g. 2027-01-01T00:00:00Z"),
  ];
}

/** One credential as a block, with its secret where there is one. */
export function showCredential(document: CredentialDocument): (paint: Paint) => string {
  return (paint) => {
    const { id, name, environment, tier, scopes: may, created_at, expires_at, revoked_at } = document;
    const secret = document.secret ?? document.client_secret;
    const block = record(
      {
        id,
        name,
        environment,
        tier,
        // A gateway token's one scope goes without saying; for whom it is, and what it may, does not.
        scopes: document.object === "gateway_token" ? undefined : may.join(", "),
        user: document.user ?? undefined,
        team: document.team ?? undefined,
        project: document.project ?? undefined,
        models: document.models?.join(", "),
        budget: document.budget_usd == null ? undefined : `$${document.budget_usd}`,
        created: created_at,
        expires: expires_at ?? undefined,
        revoked: revoked_at ?? undefined,
        secret,
      },
      paint,
    );
    return secret === undefined ? block : `${block}\n${paint.dim("The secret is shown this once: keep it.")}`;
  };
}
