// What of a provider in magic.yaml no request can carry: an address that leads nowhere, and what HTTP lets stand in no header. Looked at as it
// is written, and again once `${env:NAME}` is filled in, which is where line ends of files come from.
import { env, otherReference } from "./env-reference.ts";
import type { ProviderConfig } from "./project-gateway.ts";

export interface ProviderFault {
  /** Within the provider. */
  readonly path: readonly string[];
  /** Follows the value's name. Never the value, which may be a secret. */
  readonly problem: string;
  readonly fix: string;
}

/** RFC 9110, 5.6.2. */
const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
/** RFC 9110, 5.5: no control characters, and none that is no byte. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Of the connection, which is the daemon's own. */
const CONNECTION = /^(?:connection|content-length|expect|keep-alive|transfer-encoding|upgrade)$/i;
const REGION = /^[A-Za-z0-9-]+$/;
const inHeaders = ["api_key", "access_key_id", "session_token"] as const;
const credentials = [...inHeaders, "secret_access_key"] as const;

/** What is wrong; a reference that is not filled in yet is left for later. */
export function providerFaults(provider: ProviderConfig): ProviderFault[] {
  const { base_url: url, region, headers = {} } = provider;
  const faults: ProviderFault[] = [];
  const isFilled = (text: string | undefined): text is string => !!text && !text.includes("${env:");
  const address = isFilled(url) ? URL.parse(url) : undefined;
  if (address === null)
    faults.push({ path: ["base_url"], problem: "is no URL", fix: "Write, for example, `http://127.0.0.1:11434/v1`." });
  if (address?.username || address?.password)
    faults.push({
      path: ["base_url"],
      problem: "holds credentials, which are not sent from there",
      fix: "Write them into `api_key`, or into `authorization` under `headers`.",
    });
  if (isFilled(region) && !REGION.test(region.trim()))
    faults.push({ path: ["region"], problem: "is no AWS region", fix: "Write, for example, `us-east-1`." });
  const unsent = "holds a character that no header can carry";
  for (const key of inHeaders)
    if (isFilled(provider[key]) && !VALUE.test(provider[key].trim()))
      faults.push({ path: [key], problem: unsent, fix: "Write the key as its vendor gave it." });
  for (const key of credentials) {
    const text = provider[key]?.trim() ?? "";
    const { written, name = "" } = otherReference(text) ?? {};
    if (written === text && text.endsWith("}"))
      faults.push({ path: [key], problem: "is no reference to the environment", fix: `Write \`${env(name)}\`.` });
  }
  for (const [name, value] of Object.entries(headers)) {
    const path = ["headers", name];
    if (!TOKEN.test(name)) faults.push({ path, problem: "is no header's name", fix: "Correct it." });
    else if (CONNECTION.test(name)) faults.push({ path, problem: "is not yours to set", fix: "Remove it." });
    else if (isFilled(value) && !VALUE.test(value.trim())) faults.push({ path, problem: unsent, fix: "Correct it." });
  }
  return faults;
}
