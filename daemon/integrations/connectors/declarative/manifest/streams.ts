// What the streams of a resolved manifest say of themselves, before anything is made of them.
import { MagicError } from "#contract/errors.ts";
import { fields } from "#contract/json-object.ts";
import { type Component, children, isRecord, list, manifestError, optionalText, typeOf } from "./component.ts";

/** The streams that a manifest writes, those of conditional groups where `holds` says so. */
export function writtenStreams(manifest: Component, holds: (group: Component) => boolean = () => true): Component[] {
  return children(manifest, "streams").flatMap((each) => {
    if (typeOf(each) !== "ConditionalStreams") return [each];
    return holds(each) ? children(each, "streams") : [];
  });
}

export function nameOf(stream: Component): string {
  return (
    optionalText(stream, "name") ??
    (isRecord(stream["$parameters"]) ? (optionalText(stream["$parameters"], "name") ?? "") : "")
  );
}

/** Paths of the key's fields; empty: none. */
export function keyPathsOf({ primary_key: key }: Component): string[][] {
  if (typeof key === "string") return key ? [[key]] : [];
  return list(key).map((each) => (Array.isArray(each) ? each.map(String) : [String(each)]));
}

/** The schema that stands in the manifest; null: only the vendor knows it. */
export function inlineSchema(stream: Component): Readonly<Record<string, unknown>> | null {
  const source = typeOf(stream) === "StateDelegatingStream" ? fields(stream["full_refresh_stream"]) : stream;
  const [loader, ...others] = list(source["schema_loader"]);
  const { schema } = fields(loader);
  return others.length === 0 && isRecord(schema) ? schema : null;
}

/** @throws MagicError `not_found`, which names those that there are. */
export function streamNamed(name: string, streams: readonly Component[]): Component {
  const found = streams.find((each) => nameOf(each) === name);
  if (found) return found;
  const known = streams.length > 0 ? streams.map(nameOf).join(", ") : "none";
  throw new MagicError("not_found", `the connector has no stream '${name}'; it has ${known}`);
}

/** Streams are asked for by name. @throws MagicError `validation_failed` for one without a name, and for two of one name. */
export function checkNames(streams: readonly Component[]): void {
  const names = new Set<string>();
  for (const name of streams.map(nameOf)) {
    if (name === "") throw manifestError("a stream has no name");
    if (names.has(name)) throw manifestError(`two streams have the name '${name}'`);
    names.add(name);
  }
}
