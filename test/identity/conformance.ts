// Is an answer one that the document describes? Its status, and its body by the schema given for it.
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { Answer } from "./daemon.ts";
import type { Operation } from "./operations.ts";

/** Returns what is wrong with an answer, or undefined. Bodies other than JSON are looked at by their status alone. */
export function conformance(document: object): (operation: Operation, answer: Answer) => string | undefined {
  const ajv = new Ajv2020({ strict: false, allErrors: false });
  addFormats.default(ajv);
  ajv.addSchema({ ...document, $id: "api" });
  const compiled = new Map<string, ValidateFunction>();
  return (operation, answer) => {
    const described = operation.responses[answer.status];
    if (!described) return `${answer.status} is not described (${answer.text.slice(0, 200)})`;
    const media = answer.headers.get("content-type")?.split(";", 1)[0] ?? "";
    if (answer.text === "" || !media.endsWith("json")) return undefined;
    if (!described.content?.[media]) return `${answer.status} is not described as ${media}`;
    const parts = [
      "paths",
      operation.path,
      operation.method.toLowerCase(),
      "responses",
      String(answer.status),
      "content",
      media,
      "schema",
    ];
    const pointer = parts.map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
    let check = compiled.get(pointer);
    if (!check) {
      check = ajv.compile({ $ref: `api#/${pointer}` });
      compiled.set(pointer, check);
    }
    return check(answer.body)
      ? undefined
      : `${answer.status}: ${ajv.errorsText(check.errors)} in ${answer.text.slice(0, 300)}`;
  };
}
