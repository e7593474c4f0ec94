// Tokens -> syntax tree. The expression grammar is Jinja's, from the loosest binding (conditional) to the tightest (postfix).
import { TemplateSyntaxError } from "./errors.ts";
import { type Token, tokenize } from "./lexer.ts";

export type Expression =
  | { readonly kind: "constant"; readonly value: string | number | bigint | boolean | null; readonly float?: boolean }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "list" | "tuple"; readonly items: readonly Expression[] }
  | { readonly kind: "dict"; readonly entries: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: "attribute"; readonly object: Expression; readonly name: string }
  | { readonly kind: "item"; readonly object: Expression; readonly key: Expression }
  | { readonly kind: "slice"; readonly object: Expression; readonly parts: readonly (Expression | undefined)[] }
  | { readonly kind: "call"; readonly callee: Expression; readonly arguments: Arguments }
  | {
      readonly kind: "filter";
      readonly name: string;
      readonly input: Expression | undefined;
      readonly arguments: Arguments;
    }
  | {
      readonly kind: "test";
      readonly name: string;
      readonly input: Expression;
      readonly arguments: Arguments;
      readonly negated: boolean;
    }
  | { readonly kind: "unary"; readonly operator: "not" | "-" | "+"; readonly operand: Expression }
  | { readonly kind: "binary"; readonly operator: string; readonly left: Expression; readonly right: Expression }
  | { readonly kind: "concat"; readonly parts: readonly Expression[] }
  | { readonly kind: "compare"; readonly first: Expression; readonly rest: readonly (readonly [string, Expression])[] }
  | {
      readonly kind: "condition";
      readonly test: Expression;
      readonly value: Expression;
      readonly otherwise: Expression | undefined;
    };

export interface Arguments {
  readonly positional: readonly Expression[];
  readonly named: ReadonlyMap<string, Expression>;
}

export type Statement =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "output"; readonly expression: Expression }
  | {
      readonly kind: "if";
      readonly branches: readonly (readonly [Expression, readonly Statement[]])[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly kind: "for";
      readonly targets: readonly string[];
      readonly over: Expression;
      readonly filter: Expression | undefined;
      readonly body: readonly Statement[];
      readonly otherwise: readonly Statement[];
    }
  | {
      readonly kind: "set";
      readonly targets: readonly string[];
      readonly attribute: string | undefined;
      readonly value: Expression;
    }
  | { readonly kind: "capture"; readonly target: string; readonly body: readonly Statement[] }
  | {
      readonly kind: "with";
      readonly bindings: readonly (readonly [string, Expression])[];
      readonly body: readonly Statement[];
    };

const MAX_DEPTH = 100;
const comparisons = new Set(["==", "!=", "<", ">", "<=", ">="]);

/** Parses a whole template. Throws TemplateSyntaxError. */
export function parse(source: string): Statement[] {
  const parser = new Parser(tokenize(source));
  const body = parser.statements([]);
  parser.expectEnd();
  return body;
}

// Recursive descent shares a position: the one place here where a class says it best.
class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  expectEnd(): void {
    const token = this.#peek();
    if (token.kind !== "eof") this.#fail(`unexpected '${token.text}'`);
  }

  /** Statements up to a block tag whose name is in `until` (which stays unread after its `{%`). */
  statements(until: readonly string[]): Statement[] {
    const body: Statement[] = [];
    this.#enter();
    for (;;) {
      const token = this.#peek();
      if (token.kind === "eof") {
        if (until.length) this.#fail(`unexpected end of template, expected '${until.join("' or '")}'`);
        break;
      }
      if (token.kind === "text") {
        this.#at++;
        body.push({ kind: "text", text: token.text });
      } else if (token.kind === "open") {
        this.#at++;
        body.push({ kind: "output", expression: this.#tupleOrExpression() });
        this.#take("close", "}}");
      } else {
        this.#take("begin", "{%");
        if (until.includes(this.#peek().text)) break;
        body.push(this.#block());
      }
    }
    this.#depth--;
    return body;
  }

  #block(): Statement {
    const name = this.#take("name", undefined).text;
    if (name === "if") return this.#if();
    if (name === "for") return this.#for();
    if (name === "set") return this.#set();
    if (name === "with") return this.#with();
    if (name === "filter") return this.#filterBlock();
    throw new TemplateSyntaxError(`unsupported tag '${name}'`, this.#peek().offset);
  }

  #if(): Statement {
    const branches: (readonly [Expression, readonly Statement[]])[] = [];
    let otherwise: readonly Statement[] = [];
    let test = this.#tupleOrExpression();
    this.#take("end", "%}");
    for (;;) {
      branches.push([test, this.statements(["elif", "else", "endif"])]);
      const next = this.#take("name", undefined).text;
      if (next === "elif") {
        test = this.#tupleOrExpression();
        this.#take("end", "%}");
        continue;
      }
      this.#take("end", "%}");
      if (next === "else") {
        otherwise = this.statements(["endif"]);
        this.#endBlock("endif");
      }
      return { kind: "if", branches, otherwise };
    }
  }

  #for(): Statement {
    const targets = this.#targets();
    this.#take("name", "in");
    const over = this.#tupleOrExpression(false);
    const filter = this.#accept("name", "if") ? this.#expression() : undefined;
    if (this.#peek().text === "recursive") this.#fail("recursive loops are not supported");
    this.#take("end", "%}");
    const body = this.statements(["else", "endfor"]);
    let otherwise: readonly Statement[] = [];
    if (this.#accept("name", "else")) {
      this.#take("end", "%}");
      otherwise = this.statements(["endfor"]);
    }
    this.#endBlock("endfor");
    return { kind: "for", targets, over, filter, body, otherwise };
  }

  #set(): Statement {
    const targets = this.#targets();
    const attribute = this.#accept("operator", ".") ? this.#take("name", undefined).text : undefined;
    if (this.#accept("operator", "=")) {
      const value = this.#tupleOrExpression();
      this.#take("end", "%}");
      return { kind: "set", targets, attribute, value };
    }
    this.#take("end", "%}");
    const body = this.statements(["endset"]);
    this.#endBlock("endset");
    return { kind: "capture", target: targets[0] ?? "", body };
  }

  #with(): Statement {
    const bindings: (readonly [string, Expression])[] = [];
    while (this.#peek().kind === "name") {
      const name = this.#take("name", undefined).text;
      this.#take("operator", "=");
      bindings.push([name, this.#expression()]);
      if (!this.#accept("operator", ",")) break;
    }
    this.#take("end", "%}");
    const body = this.statements(["endwith"]);
    this.#endBlock("endwith");
    return { kind: "with", bindings, body };
  }

  /** `{% filter upper %}...{% endfilter %}`: the body is captured under a name no template can write, then filtered. */
  #filterBlock(): Statement {
    let expression: Expression = { kind: "name", name: " filtered" };
    do {
      const name = this.#take("name", undefined).text;
      expression = { kind: "filter", name, input: expression, arguments: this.#optionalArguments() };
    } while (this.#accept("operator", "|"));
    this.#take("end", "%}");
    const body = this.statements(["endfilter"]);
    this.#endBlock("endfilter");
    const captured: Statement[] = [
      { kind: "capture", target: " filtered", body },
      { kind: "output", expression },
    ];
    return { kind: "with", bindings: [], body: captured };
  }

  #targets(): string[] {
    const parenthesised = this.#accept("operator", "(");
    const names = [this.#take("name", undefined).text];
    while (this.#accept("operator", ",")) names.push(this.#take("name", undefined).text);
    if (parenthesised) this.#take("operator", ")");
    return names;
  }

  #endBlock(name: string): void {
    this.#take("name", name);
    this.#take("end", "%}");
  }

  #tupleOrExpression(conditional = true): Expression {
    const one = (): Expression => (conditional ? this.#expression() : this.#or());
    const first = one();
    if (this.#peek().text !== "," || this.#peek().kind !== "operator") return first;
    const items = [first];
    while (this.#accept("operator", ",")) {
      if (["close", "end"].includes(this.#peek().kind)) break;
      items.push(one());
    }
    return { kind: "tuple", items };
  }

  #expression(): Expression {
    this.#enter();
    let value = this.#or();
    while (this.#accept("name", "if")) {
      const test = this.#or();
      const otherwise = this.#accept("name", "else") ? this.#expression() : undefined;
      value = { kind: "condition", test, value, otherwise };
    }
    this.#depth--;
    return value;
  }

  #or(): Expression {
    return this.#chain(() => this.#and(), "or");
  }

  #and(): Expression {
    return this.#chain(() => this.#not(), "and");
  }

  #chain(operand: () => Expression, word: string): Expression {
    let left = operand();
    while (this.#accept("name", word)) left = { kind: "binary", operator: word, left, right: operand() };
    return left;
  }

  #not(): Expression {
    if (!this.#accept("name", "not")) return this.#compare();
    this.#enter();
    const operand = this.#not();
    this.#depth--;
    return { kind: "unary", operator: "not", operand };
  }

  #compare(): Expression {
    const first = this.#sum();
    const rest: [string, Expression][] = [];
    for (;;) {
      const token = this.#peek();
      if (token.kind === "operator" && comparisons.has(token.text)) {
        this.#at++;
        rest.push([token.text, this.#sum()]);
      } else if (this.#accept("name", "in")) rest.push(["in", this.#sum()]);
      else if (token.text === "not" && token.kind === "name" && this.#peek(1).text === "in") {
        this.#at += 2;
        rest.push(["not in", this.#sum()]);
      } else break;
    }
    return rest.length ? { kind: "compare", first, rest } : first;
  }

  #sum(): Expression {
    return this.#binary(() => this.#concat(), ["+", "-"]);
  }

  #concat(): Expression {
    const parts = [this.#product()];
    while (this.#accept("operator", "~")) parts.push(this.#product());
    return parts.length > 1 ? { kind: "concat", parts } : (parts[0] as Expression);
  }

  #product(): Expression {
    return this.#binary(() => this.#power(), ["*", "/", "//", "%"]);
  }

  #binary(operand: () => Expression, symbols: readonly string[]): Expression {
    let left = operand();
    for (;;) {
      const token = this.#peek();
      if (token.kind !== "operator" || !symbols.includes(token.text)) return left;
      this.#at++;
      left = { kind: "binary", operator: token.text, left, right: operand() };
    }
  }

  #power(): Expression {
    return this.#binary(() => this.#unary(true), ["**"]);
  }

  // As in Jinja, and unlike Python, the sign binds tighter than `**`, and filters tighter than both.
  #unary(filters: boolean): Expression {
    const sign = this.#peek().text;
    let value: Expression;
    if (this.#peek().kind === "operator" && (sign === "-" || sign === "+")) {
      this.#at++;
      this.#enter();
      value = { kind: "unary", operator: sign, operand: this.#unary(false) };
      this.#depth--;
    } else value = this.#postfix(this.#primary());
    return filters ? this.#filters(value) : value;
  }

  #primary(): Expression {
    const token = this.#next();
    if (token.kind === "name") {
      if (["true", "True"].includes(token.text)) return { kind: "constant", value: true };
      if (["false", "False"].includes(token.text)) return { kind: "constant", value: false };
      if (["none", "None"].includes(token.text)) return { kind: "constant", value: null };
      if (["in", "is", "and", "or", "else", "if"].includes(token.text)) this.#fail(`unexpected '${token.text}'`);
      return { kind: "name", name: token.text };
    }
    if (token.kind === "string") {
      let value = token.text;
      while (this.#peek().kind === "string") value += this.#next().text;
      return { kind: "constant", value };
    }
    if (token.kind === "number") return numberConstant(token.text);
    if (token.text === "(") return this.#parenthesised();
    if (token.text === "[") return { kind: "list", items: this.#items("]") };
    if (token.text === "{") return this.#dict();
    this.#at--;
    return this.#fail(token.kind === "eof" ? "unexpected end of template" : `unexpected '${token.text}'`);
  }

  #parenthesised(): Expression {
    if (this.#accept("operator", ")")) return { kind: "tuple", items: [] };
    const first = this.#expression();
    if (this.#accept("operator", ")")) return first;
    this.#take("operator", ",");
    return { kind: "tuple", items: [first, ...this.#items(")")] };
  }

  #items(close: string): Expression[] {
    const items: Expression[] = [];
    while (!this.#accept("operator", close)) {
      items.push(this.#expression());
      if (this.#peek().text !== close) this.#take("operator", ",");
    }
    return items;
  }

  #dict(): Expression {
    const entries: [Expression, Expression][] = [];
    while (!this.#accept("operator", "}")) {
      const key = this.#expression();
      this.#take("operator", ":");
      entries.push([key, this.#expression()]);
      if (this.#peek().text !== "}") this.#take("operator", ",");
    }
    return { kind: "dict", entries };
  }

  #postfix(start: Expression): Expression {
    let value = start;
    for (;;) {
      if (this.#accept("operator", ".")) {
        const token = this.#next();
        if (token.kind === "name") value = { kind: "attribute", object: value, name: token.text };
        else if (token.kind === "number") value = { kind: "item", object: value, key: numberConstant(token.text) };
        else this.#fail("expected name or number");
      } else if (this.#accept("operator", "[")) value = this.#subscript(value);
      else if (this.#peek().text === "(" && this.#peek().kind === "operator")
        value = { kind: "call", callee: value, arguments: this.#arguments() };
      else return value;
    }
  }

  #subscript(object: Expression): Expression {
    const parts: (Expression | undefined)[] = [];
    let part: Expression | undefined;
    for (;;) {
      if (this.#accept("operator", ":")) {
        parts.push(part);
        part = undefined;
      } else if (this.#accept("operator", "]")) break;
      else part = this.#expression();
    }
    if (parts.length) return { kind: "slice", object, parts: [...parts, part] };
    return part ? { kind: "item", object, key: part } : this.#fail("expected subscript expression");
  }

  #filters(start: Expression): Expression {
    let value = start;
    for (;;) {
      if (this.#accept("operator", "|")) {
        let name = this.#take("name", undefined).text;
        while (this.#accept("operator", ".")) name += `.${this.#take("name", undefined).text}`;
        value = this.#postfix({ kind: "filter", name, input: value, arguments: this.#optionalArguments() });
      } else if (this.#accept("name", "is")) value = this.#test(value);
      else return value;
    }
  }

  #test(input: Expression): Expression {
    const negated = this.#accept("name", "not");
    const name = this.#take("name", undefined).text;
    const next = this.#peek();
    let list: Arguments = { positional: [], named: new Map() };
    if (next.text === "(" && next.kind === "operator") list = this.#arguments();
    else if (
      next.kind === "number" ||
      next.kind === "string" ||
      (next.kind === "operator" && "[{".includes(next.text)) ||
      (next.kind === "name" && !["else", "or", "and", "is", "if", "in", "not"].includes(next.text))
    )
      list = { positional: [this.#postfix(this.#primary())], named: new Map() };
    return { kind: "test", name, input, arguments: list, negated };
  }

  #optionalArguments(): Arguments {
    const next = this.#peek();
    return next.text === "(" && next.kind === "operator" ? this.#arguments() : { positional: [], named: new Map() };
  }

  #arguments(): Arguments {
    this.#take("operator", "(");
    const positional: Expression[] = [];
    const named = new Map<string, Expression>();
    while (!this.#accept("operator", ")")) {
      if (this.#peek().kind === "name" && this.#peek(1).text === "=" && this.#peek(1).kind === "operator") {
        const name = this.#next().text;
        this.#at++;
        named.set(name, this.#expression());
      } else if (named.size) this.#fail("positional argument follows keyword argument");
      else positional.push(this.#expression());
      if (this.#peek().text !== ")") this.#take("operator", ",");
    }
    return { positional, named };
  }

  // Each level of nesting costs JavaScript stack: a hostile template must not exhaust it.
  #enter(): void {
    if (++this.#depth > MAX_DEPTH) this.#fail(`more than ${MAX_DEPTH} levels of nesting`);
  }

  #peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)] as Token;
  }

  #next(): Token {
    const token = this.#peek();
    this.#at++;
    return token;
  }

  #accept(kind: Token["kind"], text: string): boolean {
    const token = this.#peek();
    if (token.kind !== kind || token.text !== text) return false;
    this.#at++;
    return true;
  }

  #take(kind: Token["kind"], text: string | undefined): Token {
    const token = this.#peek();
    if (token.kind !== kind || (text !== undefined && token.text !== text))
      this.#fail(
        `expected ${text ? `'${text}'` : kind}, got ${token.kind === "eof" ? "end of template" : `'${token.text}'`}`,
      );
    this.#at++;
    return token;
  }

  #fail(message: string): never {
    throw new TemplateSyntaxError(message, this.#peek().offset);
  }
}

function numberConstant(text: string): Expression {
  const digits = text.replaceAll("_", "");
  if (/^\d+$/.test(digits) || /^0[xXoObB]/.test(digits)) {
    const value = BigInt(digits);
    return { kind: "constant", value: value <= Number.MAX_SAFE_INTEGER ? Number(value) : value };
  }
  return { kind: "constant", value: Number(digits), float: true };
}
