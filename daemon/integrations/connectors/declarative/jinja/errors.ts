// What evaluation can fail with. An UndefinedError is ordinary in manifests: the caller then takes the default.

/** The template itself is wrong: message and the character offset where it was noticed. */
export class TemplateSyntaxError extends Error {
  override name = "TemplateSyntaxError";
  readonly offset: number;
  constructor(message: string, offset: number) {
    super(`${message} (at character ${offset})`);
    this.offset = offset;
  }
}

/** A value of the context was missing and then used, as Jinja's UndefinedError. */
export class UndefinedError extends Error {
  override name = "UndefinedError";
}

/** The template did what Python refuses, or passed one of the evaluator's limits. */
export class EvaluationError extends Error {
  override name = "EvaluationError";
}

/** What Python refuses with a TypeError: a condition with it is true. */
export class PythonTypeError extends EvaluationError {}
