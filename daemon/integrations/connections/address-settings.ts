// Which settings a declarative manifest makes addresses of: read off its templates. What cannot be told for certain is all of them.
import { hash } from "node:crypto";
import { isObject } from "#contract/json-object.ts";
import { loadManifest } from "../connectors/declarative/manifest/load.ts";

const ADDRESS_KEY = /url|endpoint|^\$parameters$/i;
/** `config['name']`, `config.get('name'...`, `config.name`: names without escapes, which would stand for others. */
const SETTING =
  /\bconfig\s*(?:\[\s*(["'])([\w-]+)\1\s*\]|\.\s*get\s*\(\s*(["'])([\w-]+)\3\s*(?=[,)])|\.\s*(?!get\b)([A-Za-z_]\w*)\b(?!\s*\())/g;
/** The configuration in another form, or slices, which may be made of it. */
const OTHERWISE = /\bconfig\b|\bstream_\w+/;

type Names = ReadonlySet<string> | "all";

/**
 * Of the manifests that were asked for last, by their digests, for one may have 20 MB: to read one takes the daemon's thread for 25 ms, ten
 * times as long as all else of a change.
 */
const known = new Map<string, Names>();
const MOST = 100;

/** The names of the configuration's members; "all": it cannot be told. */
export function addressSettings(manifest: string): Names {
  const digest = hash("sha256", manifest);
  let found = known.get(digest);
  if (found === undefined) {
    found = readFrom(manifest);
    if (known.size >= MOST) known.clear();
    known.set(digest, found);
  }
  return found;
}

function readFrom(manifest: string): Names {
  const names = new Set<string>();
  try {
    const { resolved } = loadManifest(manifest);
    const spec = resolved["spec"];
    // Both may put any setting anywhere.
    if (resolved["dynamic_streams"] !== undefined) return "all";
    if (isObject(spec) && spec["config_normalization_rules"] !== undefined) return "all";
    const { spec: _described, ...parts } = resolved;
    return collect(parts, false, names) ? names : "all";
  } catch {
    return "all";
  }
}

// False where an address is made of the configuration in a way that names no setting.
function collect(part: unknown, address: boolean, names: Set<string>): boolean {
  if (typeof part === "string") return !(address || part.includes("://")) || collectFrom(part, names);
  if (Array.isArray(part)) return part.every((each) => collect(each, address, names));
  if (!isObject(part)) return true;
  return Object.entries(part).every(([key, value]) => {
    // A path that begins with a template may become a whole URL.
    const whole = key === "path" && typeof value === "string" && /^[\s/]*\{/.test(value);
    return collect(value, address || whole || ADDRESS_KEY.test(key), names);
  });
}

function collectFrom(template: string, names: Set<string>): boolean {
  const rest = template.replace(SETTING, (_, _quote, indexed, _other, got, dotted) => {
    names.add(indexed ?? got ?? dotted);
    return "";
  });
  return !OTHERWISE.test(rest);
}
