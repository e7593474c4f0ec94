// Where values go in a request: query, headers, form or JSON body, path. The options of requester, paginator, slices and authenticator are merged.
import { setField } from "#contract/json-object.ts";
import { type Context, text } from "../context.ts";
import { fromJson } from "../jinja/json.ts";
import { str } from "../jinja/repr.ts";
import { type Component, isRecord, list, manifestError, requiredText } from "../manifest/component.ts";
import { mergeFields } from "../read/fields.ts";

export interface RequestParts {
  readonly params: Record<string, unknown>;
  readonly headers: Record<string, string>;
  readonly form: Record<string, unknown>;
  readonly json: Record<string, unknown>;
}

export function emptyParts(): RequestParts {
  return { params: {}, headers: {}, form: {}, json: {} };
}

/** Puts one value where a RequestOption says. */
export function inject(context: Context, option: Component, value: unknown, parts: RequestParts): void {
  const into = requiredText(option, "inject_into");
  if (into === "path") return;
  const name = (field: unknown): string => text(context, option, field);
  if (into === "body_json" && Array.isArray(option["field_path"])) {
    setPath(parts.json, option["field_path"].map(name), value);
    return;
  }
  const field = name(requiredText(option, "field_name"));
  if (into === "request_parameter") parts.params[field] = value;
  else if (into === "header") parts.headers[field] = written(value);
  else if (into === "body_data") parts.form[field] = value;
  else if (into === "body_json") parts.json[field] = value;
  else
    throw manifestError(
      `RequestOption.inject_into '${into}' is none of request_parameter, header, body_data, body_json, path`,
    );
}

/** A value where only text can stand, as Python writes it: `True`, `[1, 2]`. */
export const written = (value: unknown): string => str(fromJson(value));

function setPath(target: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first = "", ...rest] = path;
  if (!rest.length) {
    setField(target, first, value);
    return;
  }
  const inner = Object.hasOwn(target, first) && isRecord(target[first]) ? target[first] : {};
  setField(target, first, inner);
  setPath(inner, rest, value);
}

/** Later parts win; JSON bodies merge deeply. */
export function merge(...all: readonly RequestParts[]): RequestParts {
  const out = emptyParts();
  for (const parts of all) {
    Object.assign(out.params, parts.params);
    Object.assign(out.headers, parts.headers);
    Object.assign(out.form, parts.form);
    mergeFields(out.json, parts.json);
  }
  return out;
}

/**
 * Query parameters on a URL: lists repeat the name, null leaves it out, what the URL already says alike is not repeated. The query that
 * the URL has stays as it is written (`index.php?/api/v2/projects`).
 */
export function withParams(url: string, params: Readonly<Record<string, unknown>>): string {
  const target = new URL(url);
  const more = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined) continue;
    const values = list(value)
      .filter((each) => each !== null)
      .map(pythonText);
    const present = target.searchParams.getAll(name);
    if (present.length === values.length && present.every((each, at) => each === values[at])) continue;
    for (const each of values) more.append(name, each);
  }
  if (more.size > 0) target.search = `${target.search}${target.search ? "&" : "?"}${more}`;
  return target.href;
}

/** application/x-www-form-urlencoded. */
export function formBody(form: Readonly<Record<string, unknown>>): string {
  const body = new URLSearchParams();
  for (const [name, value] of Object.entries(form)) for (const each of list(value)) body.append(name, pythonText(each));
  return body.toString();
}

function pythonText(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
