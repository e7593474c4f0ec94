// Whose settings may name which files and secrets: by whatever way they come into a connection, they pass here.
import { MagicError } from "#contract/errors.ts";
import type { Principal } from "#contract/identity.ts";
import { toPointer } from "#contract/json-pointer.ts";
import { urlOf } from "../live/ends.ts";
import { checkBounded, isBounded } from "../live/local-files.ts";
import type { ConnectionSecret } from "./secret.ts";

/**
 * The settings with the mark that a credential of the API has had a hand in them: once there, it stays. `root` is the project's.
 *
 * @throws MagicError `egress_blocked` for a file that such a credential must not name.
 */
export function boundedFor(
  principal: Principal,
  provider: string,
  secret: ConnectionSecret,
  root: string,
): ConnectionSecret {
  if (principal.environment === "sandbox" || !isBounded(principal)) return secret;
  const url = urlOf({ provider, ...secret });
  if (url !== undefined) checkBounded(url, root);
  return { ...secret, bounded: true };
}

/**
 * Who may name one of magic.yaml's secrets may send it anywhere: that is for those who can read magic.yaml; the sandbox sends nothing.
 * The daemon's environment is for magic.yaml alone: what named it here could never be used.
 *
 * @throws MagicError `validation_failed` for a reference that the caller must not give.
 */
export function refuseReferences(principal: Principal, { config, credentials }: GivenSettings): void {
  const bounded = principal.environment === "live" && isBounded(principal);
  const detailOf = (text: string) => {
    if (/\$\{env:\w+\}/.test(text)) return ofEnvironment;
    return bounded && text.includes("${secret:") ? ofSecret : undefined;
  };
  const problems = Object.entries({ config, credentials }).flatMap(([part, members]) =>
    Object.entries(members ?? {}).flatMap(([name, value]) => {
      const detail = detailOf(JSON.stringify(value) ?? "");
      return detail === undefined ? [] : [{ pointer: toPointer([part, name]), code: "reference", detail }];
    }),
  );
  if (problems.length > 0) throw new MagicError("validation_failed", undefined, { problems });
}

interface GivenSettings {
  readonly config?: Readonly<Record<string, unknown>> | null;
  readonly credentials?: Readonly<Record<string, unknown>> | null;
}

const ofEnvironment =
  "refers to the daemon's environment, which only magic.yaml can: name it there under secrets, and refer to that secret";
const ofSecret =
  "refers to a secret of magic.yaml: only the command line on the daemon's machine and the admin key may. Give the value itself";
