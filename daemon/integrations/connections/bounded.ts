// Whose settings may name which files: by whatever way they come into a connection, they pass here.
import type { Principal } from "#contract/identity.ts";
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
