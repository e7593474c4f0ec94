// Which of a connector's settings are secret by its schema: marked so by `airbyte_secret`, or by JSON Schema's `writeOnly`.
import { isObject, list } from "#contract/json-object.ts";
import { formsOf } from "#shared/redact.ts";

export type Schema = Readonly<Record<string, unknown>>;

/** The texts of settings that the schema marks as secret, and what they are in base64 and hex. */
export function markedSecrets(settings: Readonly<Record<string, unknown>>, schema: Schema): string[] {
  return secretsOf(settings, [schema]).flatMap(formsOf);
}

function secretsOf(settings: Readonly<Record<string, unknown>>, schemas: readonly Schema[]): string[] {
  return Object.entries(settings).flatMap(([name, value]) => {
    const described = describing(schemas, name);
    if (described.some(marksSecret)) return textsIn(value);
    return isObject(value) ? secretsOf(value, described) : [];
  });
}

function textsIn(value: unknown): string[] {
  if (typeof value === "string" || typeof value === "number") return [String(value)];
  return isObject(value) || Array.isArray(value) ? Object.values(value).flatMap(textsIn) : [];
}

/** What the schemas of an object say of one of its members, in whichever branch. */
export function describing(schemas: readonly Schema[], name: string): Schema[] {
  return schemas.flatMap(branches).flatMap(({ properties }) => {
    const member = isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
    return isObject(member) ? [member] : [];
  });
}

/** True for a member's schema that marks it as secret: of itself or, in a list, of what it holds. */
export function marksSecret(schema: Schema): boolean {
  return (
    schema["airbyte_secret"] === true || schema["writeOnly"] === true || branches(schema["items"]).some(marksSecret)
  );
}

function branches(schema: unknown): Schema[] {
  if (!isObject(schema)) return [];
  return [schema, ...["oneOf", "anyOf", "allOf"].flatMap((key) => list(schema[key]).flatMap(branches))];
}
