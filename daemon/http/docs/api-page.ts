// The API's page, from its OpenAPI document: one section a noun, one fold an operation.
import type { OpenApiDocument } from "../openapi/document.ts";
import { type Html, html, page } from "./html.ts";

interface Operation {
  readonly tags?: readonly string[];
  readonly summary?: string;
  readonly description?: string;
  readonly security?: readonly { readonly bearerAuth?: readonly string[] }[];
  readonly parameters?: readonly {
    name: string;
    in: string;
    required?: boolean;
    schema?: unknown;
    description?: string;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { schema?: unknown; example?: unknown }>> };
  readonly responses: Readonly<Record<string, { description?: string }>>;
}

export function apiPage(document: OpenApiDocument, origin: string): string {
  const paths = document["paths"] as Record<string, Record<string, Operation>>;
  const sections = new Map<string, Html[]>();
  for (const [path, item] of Object.entries(paths))
    for (const [method, operation] of Object.entries(item)) {
      const tag = operation.tags?.[0] ?? "service";
      sections.set(tag, [...(sections.get(tag) ?? []), fold(method.toUpperCase(), path, operation, origin)]);
    }
  const { title, version, description } = document["info"] as Record<string, string>;
  const body = html`<h1>${title} API ${version}</h1><p>${description}</p>
<p>Send <code>Authorization: Bearer</code> with an API key, an access token or a gateway token. Every POST takes an
<code>Idempotency-Key</code>. Lists take <code>limit</code>, <code>starting_after</code>, <code>ending_before</code>.</p>
${[...sections].map(([tag, folds]) => html`<h2 id="${tag}">${tag}</h2>${folds}`)}`;
  return page("magic: API", body);
}

function fold(method: string, path: string, operation: Operation, origin: string): Html {
  const scope = operation.security?.[0]?.bearerAuth?.[0];
  return html`<details><summary><code><span class="method">${method}</span>${path}</code> ${operation.summary ?? ""}</summary>
<p>${operation.description ?? ""}</p>
<p>${scope ? html`Scope <code>${scope}</code>.` : "Public."}</p>
${parameters(operation)}
<pre>${curl(method, path, operation, scope !== undefined, origin)}</pre>
<table><tbody>${Object.entries(operation.responses).map(
    ([status, answer]) => html`<tr><td>${status}</td><td>${answer.description ?? ""}</td></tr>`,
  )}</tbody></table></details>
`;
}

function parameters({ parameters: found = [] }: Operation): Html | null {
  if (found.length === 0) return null;
  return html`<table><tbody>${found.map(
    (one) =>
      html`<tr><td><code>${one.name}</code></td><td>${one.in}${one.required ? ", required" : ""}</td><td>${one.description ?? ""}</td></tr>`,
  )}</tbody></table>`;
}

function curl(method: string, path: string, operation: Operation, secured: boolean, origin: string): string {
  const lines = [`curl -X ${method} '${origin}${path}'`];
  if (secured) lines.push(`-H "Authorization: Bearer $MAGIC_API_KEY"`);
  const body = operation.requestBody?.content["application/json"];
  if (body) {
    lines.push(`-H 'Content-Type: application/json'`);
    if (body.example !== undefined) lines.push(`-d '${JSON.stringify(body.example)}'`);
  }
  return lines.join(" \\\n  ");
}
