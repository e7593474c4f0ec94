// Tokens -> statements: text, output, if, for, set, with, filter. Expressions are expression-parser.ts's.
import { TemplateSyntaxError } from "./errors.ts";
import { ExpressionParser } from "./expression-parser.ts";
import { tokenize } from "./lexer.ts";
import type { Expression, Statement } from "./syntax.ts";
import { TokenReader } from "./token-reader.ts";

/** Parses a whole template. Throws TemplateSyntaxError. */
export function parse(source: string): Statement[] {
  const parser = new StatementParser(new TokenReader(tokenize(source)));
  const body = parser.statements([]);
  parser.expectEnd();
  return body;
}

class StatementParser {
  readonly #tokens: TokenReader;
  readonly #expressions: ExpressionParser;

  constructor(tokens: TokenReader) {
    this.#tokens = tokens;
    this.#expressions = new ExpressionParser(tokens);
  }

  expectEnd(): void {
    const token = this.#tokens.peek();
    if (token.kind !== "eof") this.#tokens.fail(`unexpected '${token.text}'`);
  }

  /** Statements up to a block tag whose name is in `until` (which stays unread after its `{%`). */
  statements(until: readonly string[]): Statement[] {
    const body: Statement[] = [];
    this.#tokens.enter();
    for (;;) {
      const token = this.#tokens.peek();
      if (token.kind === "eof") {
        if (until.length) this.#tokens.fail(`unexpected end of template, expected '${until.join("' or '")}'`);
        break;
      }
      if (token.kind === "text") {
        this.#tokens.skip(1);
        body.push({ kind: "text", text: token.text });
      } else if (token.kind === "open") {
        this.#tokens.skip(1);
        body.push({ kind: "output", expression: this.#expressions.tupleOrExpression() });
        this.#tokens.take("close", "}}");
      } else {
        this.#tokens.take("begin", "{%");
        if (until.includes(this.#tokens.peek().text)) break;
        body.push(this.#block());
      }
    }
    this.#tokens.leave();
    return body;
  }

  #block(): Statement {
    const name = this.#tokens.take("name", undefined).text;
    if (name === "if") return this.#if();
    if (name === "for") return this.#for();
    if (name === "set") return this.#set();
    if (name === "with") return this.#with();
    if (name === "filter") return this.#filterBlock();
    throw new TemplateSyntaxError(`unsupported tag '${name}'`, this.#tokens.peek().offset);
  }

  #if(): Statement {
    const branches: (readonly [Expression, readonly Statement[]])[] = [];
    let otherwise: readonly Statement[] = [];
    let test = this.#expressions.tupleOrExpression();
    this.#tokens.take("end", "%}");
    for (;;) {
      branches.push([test, this.statements(["elif", "else", "endif"])]);
      const next = this.#tokens.take("name", undefined).text;
      if (next === "elif") {
        test = this.#expressions.tupleOrExpression();
        this.#tokens.take("end", "%}");
        continue;
      }
      this.#tokens.take("end", "%}");
      if (next === "else") {
        otherwise = this.statements(["endif"]);
        this.#endBlock("endif");
      }
      return { kind: "if", branches, otherwise };
    }
  }

  #for(): Statement {
    const targets = this.#targets();
    this.#tokens.take("name", "in");
    const over = this.#expressions.tupleOrExpression(false);
    const filter = this.#tokens.accept("name", "if") ? this.#expressions.expression() : undefined;
    if (this.#tokens.peek().text === "recursive") this.#tokens.fail("recursive loops are not supported");
    this.#tokens.take("end", "%}");
    const body = this.statements(["else", "endfor"]);
    let otherwise: readonly Statement[] = [];
    if (this.#tokens.accept("name", "else")) {
      this.#tokens.take("end", "%}");
      otherwise = this.statements(["endfor"]);
    }
    this.#endBlock("endfor");
    return { kind: "for", targets, over, filter, body, otherwise };
  }

  #set(): Statement {
    const targets = this.#targets();
    const attribute = this.#tokens.accept("operator", ".") ? this.#tokens.take("name", undefined).text : undefined;
    if (this.#tokens.accept("operator", "=")) {
      const value = this.#expressions.tupleOrExpression();
      this.#tokens.take("end", "%}");
      return { kind: "set", targets, attribute, value };
    }
    this.#tokens.take("end", "%}");
    const body = this.statements(["endset"]);
    this.#endBlock("endset");
    return { kind: "capture", target: targets[0] ?? "", body };
  }

  #with(): Statement {
    const bindings: (readonly [string, Expression])[] = [];
    while (this.#tokens.peek().kind === "name") {
      const name = this.#tokens.take("name", undefined).text;
      this.#tokens.take("operator", "=");
      bindings.push([name, this.#expressions.expression()]);
      if (!this.#tokens.accept("operator", ",")) break;
    }
    this.#tokens.take("end", "%}");
    const body = this.statements(["endwith"]);
    this.#endBlock("endwith");
    return { kind: "with", bindings, body };
  }

  /** `{% filter upper %}...{% endfilter %}`: the body is captured under a name no template can write, then filtered. */
  #filterBlock(): Statement {
    let expression: Expression = { kind: "name", name: " filtered" };
    do {
      const name = this.#tokens.take("name", undefined).text;
      expression = { kind: "filter", name, input: expression, arguments: this.#expressions.optionalArguments() };
    } while (this.#tokens.accept("operator", "|"));
    this.#tokens.take("end", "%}");
    const body = this.statements(["endfilter"]);
    this.#endBlock("endfilter");
    const captured: Statement[] = [
      { kind: "capture", target: " filtered", body },
      { kind: "output", expression },
    ];
    return { kind: "with", bindings: [], body: captured };
  }

  #targets(): string[] {
    const parenthesised = this.#tokens.accept("operator", "(");
    const names = [this.#tokens.take("name", undefined).text];
    while (this.#tokens.accept("operator", ",")) names.push(this.#tokens.take("name", undefined).text);
    if (parenthesised) this.#tokens.take("operator", ")");
    return names;
  }

  #endBlock(name: string): void {
    this.#tokens.take("name", name);
    this.#tokens.take("end", "%}");
  }
}
