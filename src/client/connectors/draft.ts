// A new connector as it is being made: what is known of it, and the manifest that this gives.
import { stringify } from "yaml";
import { MagicError } from "#contract/errors.ts";
import type { Json, Pagination } from "./findings.ts";

export type Auth =
  | { readonly type: "none" | "bearer" | "basic" }
  | { readonly type: "header" | "query"; readonly name: string }
  | { readonly type: "oauth"; readonly tokenUrl: string };

export interface Draft {
  readonly name: string;
  readonly baseUrl: string;
  readonly auth: Auth;
  readonly stream: string;
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly recordsPath: readonly string[];
  readonly primaryKey: readonly string[];
  readonly pagination: Pagination;
  /** Incremental reading: the records' field, and the parameter that takes the earliest time. */
  readonly cursor: { readonly field: string; readonly parameter: string } | null;
  readonly schema: Json;
}

/** `none`, `bearer`, `basic`, `header:X-Api-Key`, `query:api_key`, `oauth:TOKEN_URL`. Throws usage. */
export function parseAuth(text: string): Auth {
  const [type = "", detail = ""] = text.split(/:(.*)/s);
  if (type === "none" || type === "bearer" || type === "basic") return { type };
  if ((type === "header" || type === "query") && detail) return { type, name: detail };
  if (type === "oauth" && URL.canParse(detail)) return { type, tokenUrl: detail };
  throw new MagicError(
    "usage",
    `--auth takes none, bearer, basic, header:NAME, query:NAME or oauth:TOKEN_URL, not '${text}'.`,
  );
}

/** The credentials that the configuration must have. */
export function credentialsOf({ type }: Auth): readonly { readonly name: string; readonly title: string }[] {
  if (type === "none") return [];
  if (type === "bearer") return [{ name: "token", title: "Token" }];
  if (type === "header" || type === "query") return [{ name: "api_key", title: "API key" }];
  const pair = type === "basic" ? ["username", "password"] : ["client_id", "client_secret"];
  const titles = type === "basic" ? ["User name", "Password"] : ["Client id", "Client secret"];
  return pair.map((name, at) => ({ name, title: titles[at] ?? name }));
}

/** The manifest as YAML; what reads it is the same engine as for any other. */
export function manifestText(draft: Draft): string {
  const { name, baseUrl, auth, stream, path, parameters, recordsPath, primaryKey, pagination, cursor, schema } = draft;
  const credentials = credentialsOf(auth);
  const dates = cursor === null ? [] : ["start_date"];
  const manifest = {
    version: "6.48.0",
    type: "DeclarativeSource",
    check: { type: "CheckStream", stream_names: [stream] },
    streams: [
      {
        type: "DeclarativeStream",
        name: stream,
        ...(primaryKey.length > 0 ? { primary_key: primaryKey } : {}),
        ...(cursor === null ? {} : { incremental_sync: incremental(cursor) }),
        retriever: {
          type: "SimpleRetriever",
          requester: {
            ...{ type: "HttpRequester", url_base: baseUrl, path, http_method: "GET" },
            ...(Object.keys(parameters).length > 0 ? { request_parameters: parameters } : {}),
            ...(auth.type === "none" ? {} : { authenticator: authenticator(auth) }),
          },
          record_selector: {
            type: "RecordSelector",
            extractor: { type: "DpathExtractor", field_path: recordsPath.map(plain) },
          },
          ...(pagination.type === "none" ? {} : { paginator: paginator(pagination) }),
        },
        schema_loader: { type: "InlineSchemaLoader", schema },
      },
    ],
    spec: {
      type: "Spec",
      connection_specification: {
        $schema: "http://json-schema.org/draft-07/schema#",
        ...{ title: name, type: "object", additionalProperties: true },
        required: credentials.map((each) => each.name),
        properties: Object.fromEntries([
          ...credentials.map((each, order) => [each.name, { ...text(each.title, order), ...secret(each.name) }]),
          ...dates.map((each) => [each, { ...text("Start date", credentials.length), format: "date-time" }]),
        ]),
      },
    },
  };
  return `# Made by \`magic connector new\`; the format: https://docs.airbyte.com/platform/connector-development/config-based/\n${stringify(manifest, { lineWidth: 140 })}`;
}

const text = (title: string, order: number) => ({ type: "string", title, order });
const secret = (name: string) => (/user|client_id/.test(name) ? {} : { airbyte_secret: true });
const config = (name: string): string => `{{ config['${name}'] }}`;
// The names are the vendor's: one must not end its text in a template, nor be one.
const literal = (name: string): string => `'${name.replace(/[\\']/g, "\\$&")}'`;
const plain = (name: string): string => (/\{[{%#]/.test(name) ? `{{ ${literal(name)} }}` : name);
const option = (name: string) => ({ type: "RequestOption", inject_into: "request_parameter", field_name: name });

function authenticator(auth: Auth): Json {
  switch (auth.type) {
    case "basic":
      return { type: "BasicHttpAuthenticator", username: config("username"), password: config("password") };
    case "header":
    case "query": {
      const inject_into = auth.type === "header" ? "header" : "request_parameter";
      return {
        ...{ type: "ApiKeyAuthenticator", api_token: config("api_key") },
        inject_into: { type: "RequestOption", inject_into, field_name: auth.name },
      };
    }
    case "oauth":
      return {
        ...{ type: "OAuthAuthenticator", grant_type: "client_credentials", token_refresh_endpoint: auth.tokenUrl },
        ...{ client_id: config("client_id"), client_secret: config("client_secret") },
      };
    default:
      return { type: "BearerAuthenticator", api_token: config("token") };
  }
}

function paginator(pagination: Exclude<Pagination, { type: "none" }>): Json {
  const cursor = (value: string) => ({
    ...{ type: "CursorPagination", cursor_value: `{{ ${value} }}`, stop_condition: `{{ not (${value}) }}` },
  });
  const get = (path: readonly string[]): string =>
    path.reduce((value, key, at) => `${value}.get(${literal(key)}${at < path.length - 1 ? ", {}" : ""})`, "response");
  const [strategy, token] = ((): [Json, Json] => {
    switch (pagination.type) {
      case "link":
        return [cursor("headers['link'].get('next', {}).get('url')"), { type: "RequestPath" }];
      case "next_url":
        return [cursor(get(pagination.path)), { type: "RequestPath" }];
      case "cursor":
        return [cursor(get(pagination.path)), option(pagination.parameter)];
      case "header":
        return [cursor(`headers.get(${literal(pagination.name)})`), option(pagination.parameter)];
      case "last":
        return [
          {
            ...{ type: "CursorPagination", cursor_value: `{{ last_record.get(${literal(pagination.field)}) }}` },
            stop_condition: `{{ not (${get(pagination.more)}) }}`,
          },
          option(pagination.parameter),
        ];
      case "page":
        return [
          {
            ...{ type: "PageIncrement", page_size: pagination.size, start_from_page: pagination.start },
            inject_on_first_request: true,
          },
          option(pagination.parameter),
        ];
      default:
        return [{ type: "OffsetIncrement", page_size: pagination.size }, option(pagination.parameter)];
    }
  })();
  return { type: "DefaultPaginator", page_token_option: token, pagination_strategy: strategy };
}

function incremental({ field, parameter }: { readonly field: string; readonly parameter: string }): Json {
  return {
    ...{ type: "DatetimeBasedCursor", cursor_field: field, datetime_format: "%Y-%m-%dT%H:%M:%SZ" },
    cursor_datetime_formats: ["%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S%z"],
    start_datetime: {
      ...{ type: "MinMaxDatetime", datetime: "{{ config.get('start_date') or '2000-01-01T00:00:00Z' }}" },
      datetime_format: "%Y-%m-%dT%H:%M:%SZ",
    },
    start_time_option: option(parameter),
  };
}
