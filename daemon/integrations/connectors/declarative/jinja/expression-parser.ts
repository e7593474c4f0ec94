// Tokens -> expressions. The grammar is Jinja's, from the loosest binding (conditional) to the tightest (postfix).
import type { Arguments, Expression } from "./syntax.ts";
import type { TokenReader } from "./token-reader.ts";

const comparisons = new Set(["==", "!=", "<", ">", "<=", ">="]);

export class ExpressionParser {
  readonly #tokens: TokenReader;

  constructor(tokens: TokenReader) {
    this.#tokens = tokens;
  }

  tupleOrExpression(conditional = true): Expression {
    const one = (): Expression => (conditional ? this.expression() : this.#or());
    const first = one();
    if (this.#tokens.peek().text !== "," || this.#tokens.peek().kind !== "operator") return first;
    const items = [first];
    while (this.#tokens.accept("operator", ",")) {
      if (["close", "end"].includes(this.#tokens.peek().kind)) break;
      items.push(one());
    }
    return { kind: "tuple", items };
  }

  expression(): Expression {
    this.#tokens.enter();
    let value = this.#or();
    while (this.#tokens.accept("name", "if")) {
      const test = this.#or();
      const otherwise = this.#tokens.accept("name", "else") ? this.expression() : undefined;
      value = { kind: "condition", test, value, otherwise };
    }
    this.#tokens.leave();
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
    while (this.#tokens.accept("name", word)) left = { kind: "binary", operator: word, left, right: operand() };
    return left;
  }

  #not(): Expression {
    if (!this.#tokens.accept("name", "not")) return this.#compare();
    this.#tokens.enter();
    const operand = this.#not();
    this.#tokens.leave();
    return { kind: "unary", operator: "not", operand };
  }

  #compare(): Expression {
    const first = this.#sum();
    const rest: [string, Expression][] = [];
    for (;;) {
      const token = this.#tokens.peek();
      if (token.kind === "operator" && comparisons.has(token.text)) {
        this.#tokens.skip(1);
        rest.push([token.text, this.#sum()]);
      } else if (this.#tokens.accept("name", "in")) rest.push(["in", this.#sum()]);
      else if (token.text === "not" && token.kind === "name" && this.#tokens.peek(1).text === "in") {
        this.#tokens.skip(2);
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
    while (this.#tokens.accept("operator", "~")) parts.push(this.#product());
    return parts.length > 1 ? { kind: "concat", parts } : (parts[0] as Expression);
  }

  #product(): Expression {
    return this.#binary(() => this.#power(), ["*", "/", "//", "%"]);
  }

  #binary(operand: () => Expression, symbols: readonly string[]): Expression {
    let left = operand();
    for (;;) {
      const token = this.#tokens.peek();
      if (token.kind !== "operator" || !symbols.includes(token.text)) return left;
      this.#tokens.skip(1);
      left = { kind: "binary", operator: token.text, left, right: operand() };
    }
  }

  #power(): Expression {
    return this.#binary(() => this.#unary(true), ["**"]);
  }

  // As in Jinja, and unlike Python, the sign binds tighter than `**`, and filters tighter than both.
  #unary(filters: boolean): Expression {
    const sign = this.#tokens.peek().text;
    let value: Expression;
    if (this.#tokens.peek().kind === "operator" && (sign === "-" || sign === "+")) {
      this.#tokens.skip(1);
      this.#tokens.enter();
      value = { kind: "unary", operator: sign, operand: this.#unary(false) };
      this.#tokens.leave();
    } else value = this.#postfix(this.#primary());
    return filters ? this.#filters(value) : value;
  }

  #primary(): Expression {
    const token = this.#tokens.next();
    if (token.kind === "name") {
      if (["true", "True"].includes(token.text)) return { kind: "constant", value: true };
      if (["false", "False"].includes(token.text)) return { kind: "constant", value: false };
      if (["none", "None"].includes(token.text)) return { kind: "constant", value: null };
      if (["in", "is", "and", "or", "else", "if"].includes(token.text)) this.#tokens.fail(`unexpected '${token.text}'`);
      return { kind: "name", name: token.text };
    }
    if (token.kind === "string") {
      let value = token.text;
      while (this.#tokens.peek().kind === "string") value += this.#tokens.next().text;
      return { kind: "constant", value };
    }
    if (token.kind === "number") return numberConstant(token.text);
    if (token.text === "(") return this.#parenthesised();
    if (token.text === "[") return { kind: "list", items: this.#items("]") };
    if (token.text === "{") return this.#dict();
    this.#tokens.skip(-1);
    return this.#tokens.fail(token.kind === "eof" ? "unexpected end of template" : `unexpected '${token.text}'`);
  }

  #parenthesised(): Expression {
    if (this.#tokens.accept("operator", ")")) return { kind: "tuple", items: [] };
    const first = this.expression();
    if (this.#tokens.accept("operator", ")")) return first;
    this.#tokens.take("operator", ",");
    return { kind: "tuple", items: [first, ...this.#items(")")] };
  }

  #items(close: string): Expression[] {
    const items: Expression[] = [];
    while (!this.#tokens.accept("operator", close)) {
      items.push(this.expression());
      if (this.#tokens.peek().text !== close) this.#tokens.take("operator", ",");
    }
    return items;
  }

  #dict(): Expression {
    const entries: [Expression, Expression][] = [];
    while (!this.#tokens.accept("operator", "}")) {
      const key = this.expression();
      this.#tokens.take("operator", ":");
      entries.push([key, this.expression()]);
      if (this.#tokens.peek().text !== "}") this.#tokens.take("operator", ",");
    }
    return { kind: "dict", entries };
  }

  #postfix(start: Expression): Expression {
    let value = start;
    for (;;) {
      if (this.#tokens.accept("operator", ".")) {
        const token = this.#tokens.next();
        if (token.kind === "name") value = { kind: "attribute", object: value, name: token.text };
        else if (token.kind === "number") value = { kind: "item", object: value, key: numberConstant(token.text) };
        else this.#tokens.fail("expected name or number");
      } else if (this.#tokens.accept("operator", "[")) value = this.#subscript(value);
      else if (this.#tokens.peek().text === "(" && this.#tokens.peek().kind === "operator")
        value = { kind: "call", callee: value, arguments: this.#arguments() };
      else return value;
    }
  }

  #subscript(object: Expression): Expression {
    const parts: (Expression | undefined)[] = [];
    let part: Expression | undefined;
    for (;;) {
      if (this.#tokens.accept("operator", ":")) {
        parts.push(part);
        part = undefined;
      } else if (this.#tokens.accept("operator", "]")) break;
      else part = this.expression();
    }
    if (parts.length) return { kind: "slice", object, parts: [...parts, part] };
    return part ? { kind: "item", object, key: part } : this.#tokens.fail("expected subscript expression");
  }

  #filters(start: Expression): Expression {
    let value = start;
    for (;;) {
      if (this.#tokens.accept("operator", "|")) {
        let name = this.#tokens.take("name", undefined).text;
        while (this.#tokens.accept("operator", ".")) name += `.${this.#tokens.take("name", undefined).text}`;
        value = this.#postfix({ kind: "filter", name, input: value, arguments: this.optionalArguments() });
      } else if (this.#tokens.accept("name", "is")) value = this.#test(value);
      else return value;
    }
  }

  #test(input: Expression): Expression {
    const negated = this.#tokens.accept("name", "not");
    const name = this.#tokens.take("name", undefined).text;
    const next = this.#tokens.peek();
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

  optionalArguments(): Arguments {
    const next = this.#tokens.peek();
    return next.text === "(" && next.kind === "operator" ? this.#arguments() : { positional: [], named: new Map() };
  }

  #arguments(): Arguments {
    this.#tokens.take("operator", "(");
    const positional: Expression[] = [];
    const named = new Map<string, Expression>();
    while (!this.#tokens.accept("operator", ")")) {
      if (
        this.#tokens.peek().kind === "name" &&
        this.#tokens.peek(1).text === "=" &&
        this.#tokens.peek(1).kind === "operator"
      ) {
        const name = this.#tokens.next().text;
        this.#tokens.skip(1);
        named.set(name, this.expression());
      } else if (named.size) this.#tokens.fail("positional argument follows keyword argument");
      else positional.push(this.expression());
      if (this.#tokens.peek().text !== ")") this.#tokens.take("operator", ",");
    }
    return { positional, named };
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
