// The operations of the OpenAPI document, as tests walk them.

export interface Operation {
  readonly method: string;
  /** With its parameters in braces. */
  readonly path: string;
  /** null: public. */
  readonly scope: string | null;
  readonly operationId: string;
  readonly body: object | undefined;
  readonly query: readonly { readonly name: string; readonly schema: object }[];
  readonly parameters: readonly string[];
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { schema: object }>> }>>;
}

interface Described {
  readonly operationId: string;
  readonly security: readonly { readonly bearerAuth: readonly string[] }[];
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: object }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Operation["responses"];
}

export function operationsOf(document: { paths: Record<string, Record<string, Described>> }): Operation[] {
  const found: Operation[] = [];
  for (const [path, item] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(item)) {
      const parameters = operation.parameters ?? [];
      found.push({
        method: method.toUpperCase(),
        path,
        scope: operation.security[0]?.bearerAuth[0] ?? null,
        operationId: operation.operationId,
        body: operation.requestBody?.content["application/json"]?.schema,
        query: parameters.filter((one) => one.in === "query"),
        parameters: parameters.filter((one) => one.in === "path").map((one) => one.name),
        responses: operation.responses,
      });
    }
  return found;
}
