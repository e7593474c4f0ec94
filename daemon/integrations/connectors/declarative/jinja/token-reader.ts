// A position in a template's tokens, for the two halves of the parser.
import { TemplateSyntaxError } from "./errors.ts";
import type { Token } from "./lexer.ts";

const MAX_DEPTH = 100;

export class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  // Each level of nesting costs JavaScript stack: a hostile template must not exhaust it.
  enter(): void {
    if (++this.#depth > MAX_DEPTH) this.fail(`more than ${MAX_DEPTH} levels of nesting`);
  }

  peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)] as Token;
  }

  next(): Token {
    const token = this.peek();
    this.#at++;
    return token;
  }

  accept(kind: Token["kind"], text: string): boolean {
    const token = this.peek();
    if (token.kind !== kind || token.text !== text) return false;
    this.#at++;
    return true;
  }

  take(kind: Token["kind"], text: string | undefined): Token {
    const token = this.peek();
    if (token.kind !== kind || (text !== undefined && token.text !== text))
      this.fail(
        `expected ${text ? `'${text}'` : kind}, got ${token.kind === "eof" ? "end of template" : `'${token.text}'`}`,
      );
    this.#at++;
    return token;
  }

  fail(message: string): never {
    throw new TemplateSyntaxError(message, this.peek().offset);
  }

  leave(): void {
    this.#depth--;
  }

  skip(count: number): void {
    this.#at += count;
  }
}
