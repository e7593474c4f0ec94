// Stored credentials are bound to the place that they were given for: whoever changes where they go gives them again. They can never
// be read, and must not be had by pointing the connection at a server of one's own.
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type FieldProblem, MagicError } from "#contract/errors.ts";
import { isObject } from "#contract/json-object.ts";
import { describing, marksSecret, type Schema } from "../connectors/secret-settings.ts";
import { tokenUrls } from "../oauth/provider.ts";
import { leadsElsewhere, type PlaceRules } from "./places.ts";
import type { ConnectionSecret, Settings } from "./secret.ts";

/** What an authorization gave: the next one gives it anew. */
const GRANTED = new Set(["access_token", "refresh_token", "expires_at", "scope", "oauth"]);
/** Settings that no schema describes and that are no secrets. */
const PLAIN = new Set([
  ...["path", "file", "host", "port", "database", "dbname", "user", "username"],
  ...["client_id", "authorize_url", "token_url", "revoke_url", "issuer", "expires_at", "scope", "oauth"],
]);
const SECRET_NAME = /secret|token|password|passphrase|credential|key$/i;

export interface Change {
  readonly held: ConnectionSecret;
  /** The change made to settings: once to those that are held, once to what is left of them without secrets. */
  readonly apply: (settings: Settings) => Settings;
  /** True where an authorization is under way, which gives new tokens. */
  readonly authorizing?: boolean;
}

/**
 * The settings after a change; where it leads elsewhere, without the tokens that the vendor gave.
 *
 * @throws MagicError `validation_failed` that names each secret to be given again where credentials would go to another place.
 */
export function changed(rules: PlaceRules, { held, apply, authorizing = false }: Change): ConnectionSecret {
  const after = apply(held);
  if (!leadsElsewhere(rules, held, after)) return { ...held, ...after };
  const granted = held.credentials["oauth"] === true;
  const kept = authorizing ? { ...held, credentials: withoutGranted(held.credentials) } : held;
  const next = apply(kept);
  const given = leaves(apply(withoutSecrets(rules, kept)));
  const missing = [...leaves(next).keys()].filter((pointer) => !given.has(pointer));
  if (missing.length > 0) throw refused(missing, granted);
  const { tokens: _old, ...rest } = held;
  return { ...rest, ...next, place: randomUUID() };
}

/**
 * The settings with what the vendor has told of the account in place of what it told before; the caller's own stay. Where it is another
 * account, what the old one's authorization gave goes. No secret is asked for: the place that the client's secret goes to has said it.
 *
 * @throws MagicError `validation_failed` where that place itself would be another one by it.
 */
export function taught(
  rules: PlaceRules,
  held: ConnectionSecret,
  told: Readonly<Record<string, string>>,
): ConnectionSecret {
  const { config } = held;
  const its = Object.entries(told).filter(
    ([name, value]) => config[name] !== value && (config[name] === undefined || config[name] === held.learned?.[name]),
  );
  if (its.length === 0) return held;
  const news = Object.fromEntries(its);
  const apply = (settings: Settings): Settings => ({ ...settings, config: { ...settings.config, ...news } });
  const next = { ...held, ...apply(held), learned: { ...held.learned, ...news } };
  if (!isDeepStrictEqual(tokenUrls(rules.oauth, held), tokenUrls(rules.oauth, next)))
    return { ...changed(rules, { held, apply, authorizing: true }), learned: next.learned };
  if (its.every(([name]) => config[name] === undefined)) return next;
  const { tokens: _old, ...rest } = next;
  return { ...rest, credentials: withoutGranted(held.credentials), place: randomUUID() };
}

/** True where nothing but tokens differs, which are refreshed in use. */
export function sameSettings(one: Settings, other: Settings): boolean {
  const own = ({ config, credentials }: Settings) => ({ config, credentials: withoutGranted(credentials) });
  return isDeepStrictEqual(own(one), own(other));
}

function refused(pointers: readonly string[], granted: boolean): MagicError {
  const problems: FieldProblem[] = pointers.map((pointer) => ({
    pointer,
    code: "required",
    detail:
      granted && GRANTED.has(pointer.slice("/credentials/".length))
        ? "belongs to the address that it was given for: authorize the connection anew with the new settings (magic connection authorize ID --config ...)"
        : `must be given again in the same request (magic connection update: ${pointer.startsWith("/config") ? "--config" : "--credentials"}): it would go to another address now, and belongs to the one that it was given for`,
  }));
  return new MagicError("validation_failed", undefined, { problems });
}

function withoutGranted(settings: Settings["config"]): Settings["config"] {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !GRANTED.has(name)));
}

function withoutSecrets({ schema }: PlaceRules, { config, credentials }: Settings): Settings {
  const plain = (settings: Settings["config"]) => stripped(settings, [schema]) as Settings["config"];
  return { config: plain(config), credentials: plain(credentials) };
}

// Objects stay, so that a change can be made to them; arrays are changed as a whole.
function stripped(part: Readonly<Record<string, unknown>>, schemas: readonly Schema[]): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(part)) {
    const described = describing(schemas, name);
    if (described.some(marksSecret)) continue;
    if (isObject(value)) found[name] = stripped(value, described);
    else if (!isSecret(name, value, described.length > 0)) found[name] = value;
  }
  return found;
}

function isSecret(name: string, value: unknown, described: boolean): boolean {
  if (value === null || typeof value === "boolean") return false;
  // A reference stands for one of magic.yaml's secrets, wherever it is.
  if (JSON.stringify(value).includes("${")) return true;
  if (PLAIN.has(name)) return false;
  if (Array.isArray(value) && value.some((each) => typeof each === "object")) return true;
  return !described || SECRET_NAME.test(name);
}

// By JSON pointer (RFC 6901).
function leaves(settings: Settings): ReadonlyMap<string, unknown> {
  const found = new Map<string, unknown>();
  const walk = (part: unknown, pointer: string): void => {
    if (!isObject(part)) return void found.set(pointer, part);
    for (const [name, value] of Object.entries(part))
      walk(value, `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  };
  walk(settings.config, "/config");
  walk(settings.credentials, "/credentials");
  return found;
}
