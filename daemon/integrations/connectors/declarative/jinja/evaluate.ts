// Syntax tree + context -> text. Only the values of the context and the functions of this folder are reachable; work and output are bounded.
import { Arguments } from "./arguments.ts";
import { compare, contains, equals } from "./compare.ts";
import { EvaluationError, PythonTypeError, TemplateSyntaxError } from "./errors.ts";
import { filters } from "./filters.ts";
import { iterate } from "./iterate.ts";
import { member } from "./methods.ts";
import { arithmetic, item, MAX_SIZE, slice } from "./operators.ts";
import { Callable, defined, Float, float, isDict, isNumber, Tuple, truth, typeName, Undefined } from "./python.ts";
import { str } from "./repr.ts";
import type { Arguments as ArgumentNodes, Expression, Statement } from "./syntax.ts";
import { tests } from "./tests.ts";
import { pythonJson } from "./text-filters.ts";

const MAX_STEPS = 1_000_000;

/** Names in force: a block sees its parents' names and writes its own. */
interface Scope {
  readonly names: Map<string, unknown>;
  readonly parent: Scope | undefined;
}

interface Run {
  readonly body: readonly Statement[];
  readonly globals: ReadonlyMap<string, unknown>;
  readonly known: ReadonlySet<string> | undefined;
  steps: number;
  size: number;
}

/** Renders a parsed template. Throws UndefinedError or EvaluationError, for a name that is not `known` too: else it is a missing value. */
export function render(
  body: readonly Statement[],
  context: ReadonlyMap<string, unknown>,
  globals: ReadonlyMap<string, unknown>,
  known?: ReadonlySet<string>,
): string {
  const run: Run = { body, globals, known, steps: 0, size: 0 };
  const out: string[] = [];
  statements(body, { names: new Map(), parent: { names: new Map(context), parent: undefined } }, run, out);
  return out.join("");
}

function statements(body: readonly Statement[], scope: Scope, run: Run, out: string[]): void {
  for (const statement of body) {
    step(run);
    if (statement.kind === "text") emit(statement.text, run, out);
    else if (statement.kind === "output")
      emit(
        body.length === 1 ? alone(statement.expression, scope, run) : str(evaluate(statement.expression, scope, run)),
        run,
        out,
      );
    else if (statement.kind === "if") {
      const branch = statement.branches.find(([test]) => truth(evaluate(test, scope, run)));
      statements(branch ? branch[1] : statement.otherwise, scope, run, out);
    } else if (statement.kind === "for") loop(statement, scope, run, out);
    else if (statement.kind === "set") assign(statement, scope, run);
    else if (statement.kind === "capture") {
      const captured: string[] = [];
      statements(statement.body, { names: new Map(), parent: scope }, run, captured);
      scope.names.set(statement.target, captured.join(""));
    } else {
      const inner: Scope = {
        names: new Map(statement.bindings.map(([name, value]) => [name, evaluate(value, scope, run)])),
        parent: scope,
      };
      statements(statement.body, inner, run, out);
    }
  }
}

// `{{ id | string }}` is text, though it reads like a number: quoted as the reference does it, it is read as what it is. So is
// `{{ id | string if id }}`.
function alone(node: Expression, scope: Scope, run: Run): string {
  if (node.kind === "condition") {
    step(run);
    const branch = truth(evaluate(node.test, scope, run)) ? node.value : node.otherwise;
    return branch ? alone(branch, scope, run) : "";
  }
  if (node.kind !== "filter" || node.name !== "string" || !node.input) return str(evaluate(node, scope, run));
  const value = evaluate(node.input, scope, run);
  return typeof value === "string" || value instanceof Undefined ? str(value) : `"""${pythonJson(value)}"""`;
}

function emit(text: string, run: Run, out: string[]): void {
  run.size += text.length;
  if (run.size > MAX_SIZE) throw new EvaluationError("the rendered text is too large");
  out.push(text);
}

function step(run: Run): void {
  if (++run.steps > MAX_STEPS) throw new EvaluationError(`the template takes more than ${MAX_STEPS} steps`);
}

function bind(targets: readonly string[], value: unknown, names: Map<string, unknown>): void {
  if (targets.length === 1) {
    names.set(targets[0] as string, value);
    return;
  }
  const items = iterate(value);
  if (items.length !== targets.length)
    throw new EvaluationError(`cannot unpack ${items.length} values into ${targets.length} names`);
  targets.forEach((name, at) => {
    names.set(name, items[at]);
  });
}

function assign(statement: Extract<Statement, { kind: "set" }>, scope: Scope, run: Run): void {
  const value = evaluate(statement.value, scope, run);
  if (statement.attribute === undefined) {
    bind(statement.targets, value, scope.names);
    return;
  }
  const namespace = find(statement.targets[0] ?? "", scope, run);
  if (!isDict(namespace)) throw new EvaluationError("cannot assign attribute on non-namespace object");
  namespace.set(statement.attribute, value);
}

function loop(statement: Extract<Statement, { kind: "for" }>, scope: Scope, run: Run, out: string[]): void {
  let items = iterate(evaluate(statement.over, scope, run));
  const { filter } = statement;
  if (filter)
    items = items.filter((each) => {
      step(run);
      const names = new Map<string, unknown>();
      bind(statement.targets, each, names);
      return truth(evaluate(filter, { names, parent: scope }, run));
    });
  if (!items.length) {
    statements(statement.otherwise, scope, run, out);
    return;
  }
  // What `loop.changed` was asked last: one answer for all turns.
  let last: Tuple | undefined;
  const changed = new Callable("changed", (values) => {
    const before = last;
    last = new Tuple(values);
    return before === undefined || !equals(before, last);
  });
  items.forEach((each, at) => {
    step(run);
    const names = new Map<string, unknown>([["loop", loopObject(items, at, changed)]]);
    bind(statement.targets, each, names);
    statements(statement.body, { names, parent: scope }, run, out);
  });
}

function loopObject(items: readonly unknown[], at: number, changed: Callable): Map<unknown, unknown> {
  return new Map<unknown, unknown>([
    ["index", at + 1],
    ["index0", at],
    ["revindex", items.length - at],
    ["revindex0", items.length - at - 1],
    ["first", at === 0],
    ["last", at === items.length - 1],
    ["length", items.length],
    ["previtem", at > 0 ? items[at - 1] : new Undefined("there is no previous item")],
    ["nextitem", at + 1 < items.length ? items[at + 1] : new Undefined("there is no next item")],
    // Loops are never recursive here.
    ["depth", 1],
    ["depth0", 0],
    ["changed", changed],
    ["cycle", new Callable("cycle", (values) => values[at % values.length])],
  ]);
}

function find(name: string, scope: Scope, run: Run): unknown {
  // Jinja's own name for the template: it has no blocks here.
  if (name === "self") return new Map();
  for (let at: Scope | undefined = scope; at; at = at.parent) if (at.names.has(name)) return at.names.get(name);
  if (run.globals.has(name)) return run.globals.get(name);
  if (run.known && !run.known.has(name) && !binds(run.body, name))
    throw new EvaluationError(`templates have no '${name}'`);
  return new Undefined(`'${name}'`);
}

// A name that a template gives itself is known to all of it, as in Jinja.
function binds(body: readonly Statement[], name: string): boolean {
  return body.some((each) => {
    if ("targets" in each && each.targets.includes(name)) return true;
    if (each.kind === "capture" && each.target === name) return true;
    if (each.kind === "if")
      return [...each.branches.map(([, inner]) => inner), each.otherwise].some((inner) => binds(inner, name));
    return ("body" in each && binds(each.body, name)) || (each.kind === "for" && binds(each.otherwise, name));
  });
}

function evaluate(node: Expression, scope: Scope, run: Run): unknown {
  step(run);
  switch (node.kind) {
    case "constant":
      return node.float ? float(node.value as number) : node.value;
    case "name":
      return find(node.name, scope, run);
    case "list":
      return node.items.map((each) => evaluate(each, scope, run));
    case "tuple":
      return new Tuple(node.items.map((each) => evaluate(each, scope, run)));
    case "dict":
      return new Map(node.entries.map(([key, value]) => [evaluate(key, scope, run), evaluate(value, scope, run)]));
    case "attribute":
      return member(defined(evaluate(node.object, scope, run)), node.name);
    case "item": {
      const object = evaluate(node.object, scope, run);
      const key = evaluate(node.key, scope, run);
      const found = item(object, key);
      // As Jinja: when there is no such item, an attribute of that name will do.
      return found instanceof Undefined && typeof key === "string" && !(object instanceof Undefined)
        ? member(object, key)
        : found;
    }
    case "slice": {
      const parts = node.parts.map((part) => part && evaluate(part, scope, run));
      return slice(evaluate(node.object, scope, run), parts);
    }
    case "call":
      return call(node.callee, node.arguments, scope, run);
    case "filter":
      return applyFilter(node, scope, run);
    case "test":
      return applyTest(node, scope, run);
    case "unary":
      return unary(node.operator, evaluate(node.operand, scope, run));
    case "binary":
      return binary(node, scope, run);
    case "concat":
      return bounded(node.parts.map((part) => str(evaluate(part, scope, run))));
    case "compare":
      return comparison(node, scope, run);
    case "condition":
      if (truth(evaluate(node.test, scope, run))) return evaluate(node.value, scope, run);
      return node.otherwise
        ? evaluate(node.otherwise, scope, run)
        : new Undefined("the inline if-expression evaluated to false and no else section was defined.");
  }
}

function bounded(parts: readonly string[]): string {
  if (parts.reduce((total, part) => total + part.length, 0) > MAX_SIZE)
    throw new EvaluationError("the text is too large");
  return parts.join("");
}

function evaluateArguments(who: string, nodes: ArgumentNodes, scope: Scope, run: Run): Arguments {
  const named = new Map([...nodes.named].map(([name, value]) => [name, evaluate(value, scope, run)]));
  return new Arguments(
    who,
    nodes.positional.map((each) => evaluate(each, scope, run)),
    named,
  );
}

function call(node: Expression, nodes: ArgumentNodes, scope: Scope, run: Run): unknown {
  const callee = defined(evaluate(node, scope, run));
  if (!(callee instanceof Callable)) throw new PythonTypeError(`'${typeName(callee)}' object is not callable`);
  const args = evaluateArguments(callee.name, nodes, scope, run);
  return callee.call([...args.positional], args.named);
}

function applyFilter(node: Extract<Expression, { kind: "filter" }>, scope: Scope, run: Run): unknown {
  const filter = filters.get(node.name);
  if (!filter) throw new TemplateSyntaxError(`No filter named '${node.name}'.`, 0);
  const value = node.input && evaluate(node.input, scope, run);
  return filter(value, evaluateArguments(node.name, node.arguments, scope, run));
}

function applyTest(node: Extract<Expression, { kind: "test" }>, scope: Scope, run: Run): boolean {
  const test = tests.get(node.name);
  if (node.name === "filter" || node.name === "test")
    return (node.name === "filter" ? filters : tests).has(str(evaluate(node.input, scope, run))) !== node.negated;
  if (!test) throw new TemplateSyntaxError(`No test named '${node.name}'.`, 0);
  const args = evaluateArguments(node.name, node.arguments, scope, run);
  return test(evaluate(node.input, scope, run), args.positional) !== node.negated;
}

function unary(operator: "not" | "-" | "+", value: unknown): unknown {
  if (operator === "not") return !truth(value);
  defined(value);
  if (typeof value !== "boolean" && !isNumber(value))
    throw new PythonTypeError(`bad operand type for unary ${operator}: '${typeName(value)}'`);
  if (operator === "+") return typeof value === "boolean" ? Number(value) : value;
  if (value instanceof Float) return new Float(-value.value);
  return typeof value === "bigint" ? -value : 0 - Number(value);
}

function binary(node: Extract<Expression, { kind: "binary" }>, scope: Scope, run: Run): unknown {
  const left = evaluate(node.left, scope, run);
  if (node.operator === "and") return truth(left) ? evaluate(node.right, scope, run) : left;
  if (node.operator === "or") return truth(left) ? left : evaluate(node.right, scope, run);
  return arithmetic(node.operator, left, evaluate(node.right, scope, run));
}

function comparison(node: Extract<Expression, { kind: "compare" }>, scope: Scope, run: Run): boolean {
  let left = evaluate(node.first, scope, run);
  for (const [operator, next] of node.rest) {
    const right = evaluate(next, scope, run);
    if (!holds(operator, left, right)) return false;
    left = right;
  }
  return true;
}

function holds(operator: string, left: unknown, right: unknown): boolean {
  if (operator === "==") return equals(left, right);
  if (operator === "!=") return !equals(left, right);
  if (operator === "in") return contains(right, left);
  if (operator === "not in") return !contains(right, left);
  defined(left);
  defined(right);
  const order = compare(left, right, operator);
  if (operator === "<") return order < 0;
  if (operator === "<=") return order <= 0;
  return operator === ">" ? order > 0 : order >= 0;
}
