// How functions, filters and methods read their arguments: by position or by name, with a default, refusing what they do not know.
import { PythonTypeError } from "./errors.ts";
import { asNumber, defined, isNumber, typeName } from "./python.ts";

export class Arguments {
  readonly positional: readonly unknown[];
  readonly named: ReadonlyMap<string, unknown>;
  readonly #who: string;

  constructor(who: string, positional: readonly unknown[], named: ReadonlyMap<string, unknown> = new Map()) {
    this.#who = who;
    this.positional = positional;
    this.named = named;
  }

  /** Names the parameters, in order; more or unknown arguments are an error, as in Python. */
  bind(...names: string[]): this {
    if (this.positional.length > names.length)
      throw new PythonTypeError(`${this.#who}() takes ${names.length} arguments, got ${this.positional.length}`);
    for (const name of this.named.keys())
      if (!names.includes(name))
        throw new PythonTypeError(`${this.#who}() got an unexpected keyword argument '${name}'`);
    return this;
  }

  has(at: number, name: string): boolean {
    return at < this.positional.length || this.named.has(name);
  }

  any(at: number, name: string, otherwise?: unknown): unknown {
    if (at < this.positional.length) return this.positional[at];
    return this.named.has(name) ? this.named.get(name) : otherwise;
  }

  required(at: number, name: string): unknown {
    if (!this.has(at, name)) throw new PythonTypeError(`${this.#who}() missing argument '${name}'`);
    return this.any(at, name);
  }

  /** A required argument that is there: what the context lacks is an UndefinedError, for which callers have a default. */
  defined(at: number, name: string): unknown {
    return defined(this.required(at, name));
  }

  text(at: number, name: string, otherwise?: string): string {
    const value = defined(otherwise === undefined ? this.required(at, name) : this.any(at, name, otherwise));
    if (typeof value !== "string")
      throw new PythonTypeError(`${this.#who}() needs a text for '${name}', not ${typeName(value)}`);
    return value;
  }

  number(at: number, name: string, otherwise?: number): number {
    const value = defined(otherwise === undefined ? this.required(at, name) : this.any(at, name, otherwise));
    if (!isNumber(value) && typeof value !== "boolean")
      throw new PythonTypeError(`${this.#who}() needs a number for '${name}', not ${typeName(value)}`);
    return asNumber(value);
  }
}

/** What a value can be asked to do. */
export type Method<T> = (self: T, args: Arguments) => unknown;
