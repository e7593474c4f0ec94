// The door of this folder: a template and a context in, a native value out, as the reference (Jinja2 and ast.literal_eval) makes it.
import { EvaluationError, TemplateSyntaxError, UndefinedError } from "./errors.ts";
import { render } from "./evaluate.ts";
import { fromJson, toJson } from "./json.ts";
import { literalEval } from "./literal.ts";
import { globals } from "./macros.ts";
import { parse } from "./parser.ts";
import { type Float, Opaque } from "./python.ts";
import { str } from "./repr.ts";
import type { Statement } from "./syntax.ts";

/** Parsed templates are kept: a manifest renders the same few thousands of times. */
const MAX_CACHED = 5000;
const parsed = new Map<string, readonly Statement[]>();

const aliases: readonly (readonly [alias: string, name: string])[] = [
  ["stream_interval", "stream_slice"],
  ["stream_partition", "stream_slice"],
];

export interface Interpolator {
  /** The rendered text. Throws TemplateSyntaxError, UndefinedError, EvaluationError. */
  render(template: string, context: Readonly<Record<string, unknown>>): string;
  /** The rendered text; a missing value gives "". */
  text(template: string, context: Readonly<Record<string, unknown>>): string;
  /** The rendered text read as a Python literal; a missing value gives `otherwise`. JSON in, JSON out. */
  evaluate(template: string, context: Readonly<Record<string, unknown>>, otherwise?: unknown): unknown;
}

// Quotes that stand in the manifest, not in the data: `"https://{{ host }}/"` means what is between them, as in the reference.
const QUOTED = /["']\s*$/;

/** An evaluator on the given clock (milliseconds since the epoch). What is neither in the context nor `known` is an error; absent: a missing value. */
export function createInterpolator(now: () => number = Date.now, known?: ReadonlySet<string>): Interpolator {
  const functions = globals(now);
  const renderOne = (template: string, context: Readonly<Record<string, unknown>>): string => {
    if (!template.includes("{")) return template;
    const names = new Map<string, unknown>();
    // What a template does not name need not be converted: a page of records may be in the context.
    const wanted = (name: string): boolean =>
      template.includes(name) || aliases.some(([alias, target]) => target === name && template.includes(alias));
    for (const name of Object.keys(context)) if (wanted(name)) names.set(name, fromJson(context[name]));
    for (const [alias, name] of aliases) if (!names.has(alias) && names.has(name)) names.set(alias, names.get(name));
    try {
      return render(statementsOf(template), names, functions, known);
    } catch (error) {
      throw placed(error, template);
    }
  };
  return {
    render: renderOne,
    text: (template, context) => {
      try {
        const text = renderOne(template, context);
        // What the filter `string` has made.
        if (text.startsWith('"""')) return str(literalEval(text));
        const meant = QUOTED.test(template) && /^[ \t]*["']/.test(text) ? literalEval(text) : text;
        return typeof meant === "string" ? meant : text;
      } catch (error) {
        if (error instanceof UndefinedError) return "";
        throw error;
      }
    },
    evaluate: (template, context, otherwise) => {
      try {
        const text = renderOne(template, context);
        if (text !== "" || otherwise === undefined) return literalIn(text);
      } catch (error) {
        if (!(error instanceof UndefinedError) || otherwise === undefined) throw error;
      }
      return typeof otherwise === "string" ? literalIn(renderOne(otherwise, context)) : otherwise;
    },
  };
}

// A manifest has hundreds of templates: which one it was is half of what there is to tell.
function placed(error: unknown, template: string): unknown {
  if (error instanceof EvaluationError || error instanceof TemplateSyntaxError)
    error.message += `, in the template ${template.replace(/\s+/g, " ").trim().slice(0, 200)}`;
  return error;
}

/** An id such as 12J reads like one of Python's complex numbers: what JSON has no form for stays text, as it is written. */
export function literalIn(text: string, whole?: (value: Float) => unknown): unknown {
  const value = literalEval(text);
  return value instanceof Opaque ? text : toJson(value, whole);
}

function statementsOf(template: string): readonly Statement[] {
  const known = parsed.get(template);
  if (known) return known;
  const body = parse(template);
  if (parsed.size >= MAX_CACHED) parsed.clear();
  parsed.set(template, body);
  return body;
}
