// The credentials that `magic daemon start` prints. They outlive the daemon: made once for a root, kept beside its state in a
// file that only the user can read.
import { randomBytes } from "node:crypto";
import { MagicError } from "#contract/errors.ts";
import { credentialPrefixes, credentialsOf, type LocalCredentials } from "#shared/local-credentials.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { credentialsFile } from "#shared/paths.ts";
import { textIfThere } from "#shared/plain-file.ts";
import { replaceFile } from "#shared/replace-file.ts";

/** The root's credentials, made at the first call. `folder` is the state folder. Throws `state_unusable` for a damaged file. */
export async function loadLocalCredentials(folder: string): Promise<LocalCredentials> {
  const path = credentialsFile(folder);
  const text = await textIfThere(path);
  if (text !== undefined) return parse(text, path);
  const credentials = createLocalCredentials();
  makeFolder(folder, 0o700);
  await replaceFile(path, JSON.stringify(credentials));
  return credentials;
}

/** New ones, 256 random bits each. */
function createLocalCredentials(): LocalCredentials {
  const random = () => randomBytes(32).toString("base64url");
  const made = Object.entries(credentialPrefixes).map(([name, prefix]) => [name, prefix + random()]);
  return Object.fromEntries(made) as LocalCredentials;
}

function parse(text: string, path: string): LocalCredentials {
  const found = credentialsOf(text);
  if (found) return found;
  const next = "Restore it from a copy, or remove it: new credentials are made.";
  // Without the text: it may hold credentials.
  throw new MagicError("state_unusable", `${path} is damaged.`, { extra: { next } });
}
