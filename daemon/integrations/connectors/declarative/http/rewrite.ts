// MAGIC_HTTP_REWRITE="HOST=ORIGIN,*=ORIGIN": sends a connector's requests to a loopback server instead, for tests. Path, query, body and the
// original Host header stay. Any origin that is not loopback is refused, so that it can never leak credentials.
import { MagicError } from "#contract/errors.ts";
import { isLoopback } from "#shared/loopback.ts";

export type Rewrite = (url: URL) => { readonly origin: string; readonly host: string } | undefined;

/** Throws usage when the setting cannot be read or names another machine; undefined when it is not set. */
export function parseRewrite(setting: string | undefined): Rewrite | undefined {
  if (!setting) return undefined;
  const rules = rulesOf(setting);
  return (url) => {
    const origin = rules.get(url.host.toLowerCase()) ?? rules.get(url.hostname.toLowerCase()) ?? rules.get("*");
    return origin === undefined ? undefined : { origin, host: url.host };
  };
}

/** The `host:port` pairs that the setting is the permission to reach. */
export function rewriteTargets(setting: string | undefined): string[] {
  return setting
    ? [...rulesOf(setting).values()].map((origin) => {
        const url = new URL(origin);
        return `${url.hostname}:${portOf(url)}`;
      })
    : [];
}

/** The `host:port` pairs of loopback URLs in a configuration: who types one at a command line means this machine. */
export function loopbackTargets(config: unknown): string[] {
  if (Array.isArray(config)) return config.flatMap(loopbackTargets);
  if (typeof config === "object" && config !== null) return Object.values(config).flatMap(loopbackTargets);
  if (typeof config !== "string" || !/^https?:\/\//i.test(config) || !URL.canParse(config)) return [];
  const url = new URL(config);
  return isLoopback(url.hostname) ? [`${url.hostname}:${portOf(url)}`] : [];
}

const portOf = (url: URL): string => url.port || (url.protocol === "https:" ? "443" : "80");

function rulesOf(setting: string): ReadonlyMap<string, string> {
  const rules = new Map<string, string>();
  for (const rule of setting.split(",")) {
    const [host = "", origin = ""] = rule.split(/=(.*)/s).map((part) => part.trim());
    if (!host || !URL.canParse(origin))
      throw new MagicError("usage", `MAGIC_HTTP_REWRITE: '${rule}' is not HOST=ORIGIN`);
    const url = new URL(origin);
    if (!isLoopback(url.hostname))
      throw new MagicError("usage", `MAGIC_HTTP_REWRITE: ${url.origin} is not a loopback origin`);
    rules.set(host.toLowerCase(), url.origin);
  }
  return rules;
}
