// Text that a person wrote (YAML 1.2 or JSON) -> its value, and where every part of it stands. Hostile text is expected: sizes
// and depth are bounded, aliases are refused (`&a [*a]` is a circular object, and a few lines of them can grow without end).
import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit, type YAMLMap } from "yaml";
import { pointerParts } from "./json-pointer.ts";
import type { Problem } from "./problem.ts";

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A file that was read; its value is plain JSON. */
export interface Source {
  readonly file: string;
  readonly value: unknown;
  /** Where the value at a JSON pointer stands; with `key`, where that key of the mapping there stands. */
  locate(pointer: string, key?: string): Position;
  /** The scalar as it was written (`1.0`, not 1); undefined for mappings and lists. */
  written(pointer: string): string | undefined;
}

export interface ReadResult {
  /** Undefined where the text cannot be read at all. */
  readonly source: Source | undefined;
  readonly problems: readonly Problem[];
}

/** Larger files are no contract or configuration. */
const MAX_SOURCE_BYTES = 512 * 1024;
const MAX_DEPTH = 100;
// A broken file can have one at every character; nobody reads further than this.
export const MAX_PROBLEMS = 1_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: neither YAML nor JSON has them
const CONTROL = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/;

// Tags that the parser knows by itself; unknown ones it reports.
const NO_JSON_TAG = /:(binary|set|omap|pairs|timestamp)$/;

/** Reads YAML or JSON. Every problem of form is reported, not only the first. */
export function readSource(content: string | Uint8Array, file: string): ReadResult {
  const size = typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;
  if (size > MAX_SOURCE_BYTES)
    return refuse(file, "too_large", `The file has ${size} bytes, more than ${MAX_SOURCE_BYTES}.`, "Make it smaller.");
  const text = decode(content);
  if (text === undefined) return refuse(file, "not_utf8", "The file is not valid UTF-8.", "Save it as UTF-8 text.");
  if (text.trim() === "") return refuse(file, "empty", "The file is empty.", "Write the document into it.");
  const lines = new LineCounter();
  try {
    return parse(text, file, lines);
  } catch (error) {
    // The parser is recursive: text that nests without end exhausts the stack, which is caught like any other refusal.
    if (error instanceof RangeError) return refuse(file, "too_deep", "The text nests too deeply.", "Nest less deeply.");
    return refuse(file, "yaml_syntax", `The text cannot be read: ${(error as Error).message}.`, "Correct the YAML.");
  }
}

function parse(text: string, file: string, lines: LineCounter): ReadResult {
  // The parser compares every key with all before it: a mapping of 16,000 would take it seconds. `forbidden` looks for doubled ones.
  const form = {
    lineCounter: lines,
    prettyErrors: false,
    version: "1.2",
    stringKeys: true,
    uniqueKeys: false,
  } as const;
  const document = parseDocument(text, form);
  const at = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const problems: Problem[] = [...document.errors, ...document.warnings].map((error) => ({
    file,
    ...at(error.pos[0]),
    pointer: "",
    ...syntaxProblem(error.code, error.message),
  }));
  // The parser itself catches the exhausted stack and reports it at every level.
  if (document.errors.some((error) => error.message.startsWith("Maximum call stack"))) throw new RangeError();
  problems.push(...forbidden(document.contents, file, at));
  const control = CONTROL.exec(text);
  if (control)
    problems.push({
      file,
      ...at(control.index),
      pointer: "",
      code: "control_character",
      message: `There is a control character here (U+${text.charCodeAt(control.index).toString(16).padStart(4, "0")}).`,
      fix: "Remove it.",
    });
  if (problems.length === 0 && file.endsWith(".json")) problems.push(...strictJson(text, file));
  if (problems.length > 0) return { source: undefined, problems: problems.slice(0, MAX_PROBLEMS) };
  const root = document.contents;
  const source: Source = {
    file,
    value: document.toJS({ maxAliasCount: 0 }),
    locate: (pointer, key) => locate(root, at, pointer, key),
    written: (pointer) => {
      const node = walk(root, pointer).node;
      return isScalar(node) && typeof node.source === "string" ? node.source : undefined;
    },
  };
  return { source, problems };
}

// YAML reads more than JSON; other readers of a .json file do not.
function strictJson(text: string, file: string): Problem[] {
  try {
    JSON.parse(text);
    return [];
  } catch (error) {
    const { message } = error as Error;
    const [, line = "1", column = "1"] = /\(line (\d+) column (\d+)\)/.exec(message) ?? [];
    const said = `This is not JSON: ${message.replace(/ at position \d+.*/s, "")}.`;
    const fix = "Correct it: double quotes, no comma behind the last entry, no comments; or call the file .yaml.";
    return [{ file, line: Number(line), column: Number(column), pointer: "", code: "json_syntax", message: said, fix }];
  }
}

function decode(content: string | Uint8Array): string | undefined {
  try {
    const text = typeof content === "string" ? content : new TextDecoder("utf-8", { fatal: true }).decode(content);
    return text.startsWith("\ufeff") ? text.slice(1) : text;
  } catch {
    return undefined;
  }
}

function refuse(file: string, code: string, message: string, fix: string): ReadResult {
  return { source: undefined, problems: [{ file, line: 1, column: 1, pointer: "", code, message, fix }] };
}

const syntaxFixes: Readonly<Record<string, readonly [code: string, fix: string]>> = {
  TAB_AS_INDENT: ["yaml_tab", "Indent with spaces."],
  NON_STRING_KEY: ["yaml_key", "Put the key in quotes."],
  MULTIPLE_DOCS: ["yaml_documents", "Keep one document: remove what follows `---`."],
  TAG_RESOLVE_FAILED: ["yaml_tag", "Remove the tag."],
  BAD_INDENT: ["yaml_syntax", "Close every bracket, and indent the keys of one mapping alike."],
  MISSING_CHAR: ["yaml_syntax", "Close the bracket or quote, or put the colon."],
  BLOCK_AS_IMPLICIT_KEY: [
    "yaml_syntax",
    "Put a value that holds `: ` in quotes, and indent the keys of one mapping alike.",
  ],
  MULTILINE_IMPLICIT_KEY: ["yaml_syntax", "Put the key and its colon on one line."],
};

function syntaxProblem(yamlCode: string, message: string): Pick<Problem, "code" | "message" | "fix"> {
  const [code, fix] = syntaxFixes[yamlCode] ?? ["yaml_syntax", "Correct the YAML here."];
  if (yamlCode === "MULTIPLE_DOCS") return { code, message: "A second document begins here.", fix };
  if (yamlCode === "NON_STRING_KEY") return { code, message: "Keys must be text.", fix };
  return { code, message: `${message.split("\n")[0]?.replace(/\.?$/, ".") ?? ""}`, fix };
}

/** Doubled keys, and what YAML allows and JSON does not: aliases, merge keys, not-a-number, and names that change an object's prototype. */
function forbidden(root: Node | null, file: string, at: (offset: number) => Position): Problem[] {
  const problems: Problem[] = [];
  const add = (node: Node, code: string, message: string, fix: string) =>
    problems.push({ file, ...at(node.range?.[0] ?? 0), pointer: "", code, message, fix });
  const tag = (node: Node): void => {
    if (node.tag !== undefined && NO_JSON_TAG.test(node.tag))
      add(node, "yaml_tag", "The tag makes something here that JSON does not have.", "Remove the tag.");
  };
  const doubled = (map: YAMLMap): void => {
    const seen = new Set<unknown>();
    for (const { key } of map.items) {
      if (!isScalar(key)) continue;
      if (seen.has(key.value)) add(key, "duplicate_key", "Map keys must be unique.", "Keep one of the two.");
      seen.add(key.value);
    }
  };
  visit(root, {
    Collection: (_key, node, path) => {
      tag(node);
      if (isMap(node)) doubled(node);
      if (path.length <= MAX_DEPTH * 2) return undefined;
      add(node, "too_deep", `More than ${MAX_DEPTH} levels are nested here.`, "Nest less deeply.");
      return visit.SKIP;
    },
    Alias: (_key, node) => {
      add(node, "yaml_alias", `The alias *${node.source} is not allowed.`, "Write the value out here.");
      return visit.SKIP;
    },
    Scalar: (_key, node) => {
      tag(node);
      if (typeof node.value === "number" && !Number.isFinite(node.value))
        add(node, "not_json", `${node.source ?? node.value} is not a JSON number.`, "Write a finite number.");
    },
    Pair: (_key, pair) => {
      if (isScalar(pair.key) && pair.key.value === "__proto__")
        add(pair.key, "forbidden_key", "The key __proto__ is not allowed.", "Give it another name.");
      if (isAlias(pair.key)) add(pair.key, "yaml_alias", "A key cannot be an alias.", "Write the key out.");
    },
  });
  return problems;
}

function walk(root: Node | null, pointer: string): { node: Node | null; complete: boolean } {
  let node = root;
  for (const part of pointerParts(pointer)) {
    const next: unknown = isMap(node) ? node.get(part, true) : isSeq(node) ? node.get(Number(part), true) : undefined;
    if (next === undefined || next === null) return { node, complete: false };
    node = next as Node;
  }
  return { node, complete: true };
}

function locate(root: Node | null, at: (offset: number) => Position, pointer: string, key?: string): Position {
  const { node } = walk(root, pointer);
  if (key !== undefined && isMap(node)) {
    const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === key);
    if (isScalar(pair?.key)) return at(pair.key.range?.[0] ?? 0);
  }
  return at(node?.range?.[0] ?? 0);
}
