// The credentials that `magic daemon start` prints. They outlive the daemon: made once for a root, kept beside its state in a
// file that only the user can read.
import { randomBytes } from "node:crypto";
import { MagicError } from "#contract/errors.ts";
import type { RuntimeFile } from "#contract/protocol.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { credentialsFile } from "#shared/paths.ts";
import { textIfThere } from "#shared/plain-file.ts";
import { replaceFile } from "#shared/replace-file.ts";

export type LocalCredentials = Pick<RuntimeFile, "local_token" | "gateway_token" | "api_key" | "admin_key">;

const prefixes: Readonly<Record<keyof LocalCredentials, string>> = {
  local_token: "mt_local_",
  gateway_token: "gt_",
  api_key: "sk_test_",
  admin_key: "sk_admin_",
};

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
  const made = Object.entries(prefixes).map(([name, prefix]) => [name, prefix + randomBytes(32).toString("base64url")]);
  return Object.fromEntries(made) as LocalCredentials;
}

function parse(text: string, path: string): LocalCredentials {
  try {
    const found = JSON.parse(text) as LocalCredentials;
    const complete = Object.entries(prefixes).every(([name, prefix]) =>
      String(found[name as keyof LocalCredentials]).startsWith(prefix),
    );
    if (complete) return found;
  } catch {
    // Told below, without the text: it may hold credentials.
  }
  const next = "Restore it from a copy, or remove it: new credentials are made.";
  throw new MagicError("state_unusable", `${path} is damaged.`, { extra: { next } });
}
