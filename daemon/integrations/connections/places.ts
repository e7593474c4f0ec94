// Where a connection's credentials go, as far as its settings decide it: compared before and after a change.
import { isDeepStrictEqual } from "node:util";
import { isInCode } from "../connectors/open.ts";
import { readServerUrl } from "../engine/server-url.ts";
import { urlOf } from "../live/ends.ts";
import { type OAuthDefinition, tokenUrls } from "../oauth/provider.ts";
import { addressSettings } from "./address-settings.ts";
import type { Settings } from "./secret.ts";

/** What a connector's definition says of that. */
export interface PlaceRules {
  readonly provider: string;
  /** Of a declarative connector; null: it is one in code, or gone. */
  readonly manifest: string | null;
  readonly oauth: OAuthDefinition;
  /** Of the configuration: tells which settings are secret. */
  readonly schema: Readonly<Record<string, unknown>>;
}

/** True where credentials that belong to `from` could reach another place by `to`; when it cannot be told, too. */
export function leadsElsewhere(rules: PlaceRules, from: Settings, to: Settings): boolean {
  if (!isDeepStrictEqual(tokenUrls(rules.oauth, from), tokenUrls(rules.oauth, to))) return true;
  if (isInCode(rules.provider)) return serverOf(rules.provider, from) !== serverOf(rules.provider, to);
  const [before, after] = [effective(from), effective(to)];
  if (isDeepStrictEqual(before, after)) return false;
  const made = rules.manifest === null ? "all" : addressSettings(rules.manifest);
  const names = made === "all" ? Object.keys({ ...before, ...after }) : [...made];
  return names.some((name) => !isDeepStrictEqual(before[name], after[name]));
}

// As a manifest's templates see them.
const effective = ({ config, credentials }: Settings): Readonly<Record<string, unknown>> => ({
  ...config,
  ...credentials,
});

// Its parameters belong to it: they may name another host, or do without TLS. User, password and database do not; of an HTTP endpoint the
// path does, for many hosts are shared by path.
function serverOf(provider: string, settings: Settings): string {
  const given = urlFrom(provider, settings);
  const url = readServerUrl(given);
  if (url === null) return given;
  return `${url.protocol}//${url.host}${/^https?:/.test(url.protocol) ? url.pathname : ""}${url.search}`;
}

// One that cannot be read leads nowhere, and is no other's place.
function urlFrom(provider: string, settings: Settings): string {
  try {
    return urlOf({ provider, ...settings }) ?? "";
  } catch {
    return JSON.stringify(effective(settings));
  }
}
