// A resolved component of a manifest: plain data with a `type`. The readers here name what is wrong and where.
import { MagicError } from "#contract/errors.ts";
import { isObject } from "#contract/json-object.ts";
import { ExactNumber } from "#shared/exact-number.ts";

export type Component = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !(value instanceof ExactNumber);
}

/** A manifest that cannot be used; `what` names the component and field. */
export function manifestError(what: string): MagicError {
  return new MagicError("validation_failed", `manifest: ${what}`);
}

export function typeOf(component: Component): string {
  return String(component["type"] ?? "");
}

export function child(component: Component, field: string): Component {
  const value = component[field];
  if (!isRecord(value)) throw manifestError(`${typeOf(component)}.${field} must be a component`);
  return value;
}

/** What is written there and is no component is told: left out, a paginator that stands as text would cost all pages but the first. */
export function optionalChild(component: Component, field: string): Component | undefined {
  const value = component[field];
  return value === undefined || value === null ? undefined : child(component, field);
}

/** A list of components, or one alone; what is neither is told. */
export function children(component: Component, field: string): Component[] {
  const members = list(component[field]);
  if (!members.every(isRecord)) throw manifestError(`${typeOf(component)}.${field} must be components`);
  return members;
}

export function requiredText(component: Component, field: string): string {
  const value = component[field];
  if (typeof value !== "string" && typeof value !== "number")
    throw manifestError(`${typeOf(component)}.${field} is missing`);
  return String(value);
}

export function optionalText(component: Component, field: string): string | undefined {
  const value = component[field];
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined || value === null ? [] : [value];
}

/** Components written in Python by a connector's authors: they cannot run here, and are named. */
export function refuseCustom(component: Component): never {
  const name = optionalText(component, "class_name");
  if (name === undefined && !typeOf(component).startsWith("Custom"))
    throw manifestError(`${typeOf(component) || "a component without a type"} is not supported here`);
  throw manifestError(
    `${typeOf(component)} '${name ?? ""}' is written in Python and cannot run here; replace it by a declarative component`,
  );
}
