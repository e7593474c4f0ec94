// Query, headers and body of a request, as the requester itself writes them.
import { type Context, native, nested, text, type Variables } from "../context.ts";
import { type Component, isRecord, list, manifestError, optionalChild, typeOf } from "../manifest/component.ts";
import { emptyParts, type RequestParts } from "./options.ts";

interface OwnParts {
  readonly parts: RequestParts;
  readonly raw: string | undefined;
  readonly list: unknown[] | undefined;
}

export function ownParts(context: Context, component: Component, variables: Variables, asked: unknown): OwnParts {
  const parts = emptyParts();
  const params = textValues(context, component, component["request_parameters"], variables);
  Object.assign(parts.params, typeof params === "string" ? Object.fromEntries(new URLSearchParams(params)) : params);
  const named = component["request_parameters"];
  for (const [name, value] of Object.entries(isRecord(named) ? named : {}))
    if (isQueryProperties(value)) parts.params[name] = list(asked).join(",");
  const headers = isRecord(component["request_headers"])
    ? component["request_headers"]
    : nested(context, component, component["request_headers"] ?? {}, variables);
  for (const [name, value] of Object.entries(isRecord(headers) ? headers : {})) {
    const written = text(context, component, value, variables);
    if (written !== "" && written !== "None") parts.headers[text(context, component, name, variables)] = written;
  }
  const { json, ...body } = bodyOf(component);
  const data = textValues(context, component, body.data, variables);
  const raw = typeof data === "string" ? data : undefined;
  if (raw === undefined) Object.assign(parts.form, data);
  const value = json === undefined ? {} : nested(context, component, json, variables);
  if (isRecord(value)) Object.assign(parts.json, value);
  // Left out, a filter of the body's would be none.
  else if (!Array.isArray(value) && String(value ?? "").trim() !== "")
    throw manifestError(
      "a request's JSON body comes to text that is no JSON; write it as an object, its values as templates",
    );
  return { parts, raw, list: Array.isArray(value) ? value : undefined };
}

/** Names of fields to ask for: who sends the request has them in the slice. */
export function isQueryProperties(value: unknown): value is Component {
  return isRecord(value) && value["type"] === "QueryProperties";
}

function bodyOf(component: Component): { data?: unknown; json?: unknown } {
  const body = optionalChild(component, "request_body");
  if (!body) return { data: component["request_body_data"], json: component["request_body_json"] };
  const type = typeOf(body);
  if (type === "RequestBodyPlainText" || type === "RequestBodyUrlEncodedForm") return { data: body["value"] };
  return { json: body["value"] };
}

// Query and form values are text or lists; what a template gives for anything else stays the text that it wrote. In place of the
// mapping there may be text, or one expression that comes to a mapping.
function textValues(
  context: Context,
  component: Component,
  mapping: unknown,
  variables: Variables,
): Record<string, unknown> | string {
  if (typeof mapping === "string") {
    const made = /^\s*\{\{.*\}\}\s*$/s.test(mapping) ? native(context, component, mapping, variables) : undefined;
    return isRecord(made) ? withoutNull(made) : text(context, component, mapping, variables);
  }
  const out: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(isRecord(mapping) ? mapping : {})) {
    if (isQueryProperties(value)) continue;
    const evaluated = nested(context, component, value, variables);
    if (evaluated === null || evaluated === undefined || evaluated === "") continue;
    const asItIs = typeof evaluated === "string" || typeof value !== "string";
    const written = asItIs ? "" : text(context, component, value, variables);
    // `1,2` is text, though Python reads a tuple in it.
    const isList = Array.isArray(evaluated) && /^\s*\[/.test(written);
    out[text(context, component, name, variables)] = asItIs || isList ? evaluated : written;
  }
  return out;
}

const withoutNull = (values: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null));
