// The credentials that `magic daemon start` prints, as their file has them.
import { fields } from "#contract/json-object.ts";
import type { RuntimeFile } from "#contract/protocol.ts";

export type LocalCredentials = Pick<RuntimeFile, "local_token" | "gateway_token" | "api_key" | "admin_key">;

/** What each begins with. */
export const credentialPrefixes: Readonly<Record<keyof LocalCredentials, string>> = {
  local_token: "mt_local_",
  gateway_token: "gt_",
  api_key: "sk_test_",
  admin_key: "sk_admin_",
};

/** The credentials that a file's text holds; undefined where that is damaged. */
export function credentialsOf(text: string): LocalCredentials | undefined {
  try {
    const found = fields(JSON.parse(text));
    const complete = Object.entries(credentialPrefixes).every(([name, prefix]) =>
      String(found[name]).startsWith(prefix),
    );
    return complete ? (found as unknown as LocalCredentials) : undefined;
  } catch {
    return undefined;
  }
}
