// A handler and its answer.
import type { HandlerRequest } from "./request.ts";

const replyBrand: unique symbol = Symbol.for("magic.reply") as never;

/** The output of an invocation, made by `reply()`. */
export interface Reply<Output = unknown> {
  readonly [replyBrand]: true;
  readonly output: Output;
}

/** A function that turns a request into an output; a bare output is taken as `reply(output)`. */
export type Handler<Input = unknown, Output = unknown> = (
  request: HandlerRequest<Input>,
) => Reply<Output> | Output | Promise<Reply<Output> | Output>;

/**
 * Declares the controller's handler: the default export of handler.ts.
 *
 * `Input` and `Output` are the types that `magic scaffold` and `magic validate` generate from the contract's schemas. The daemon has
 * checked the input against `input_schema` before the handler runs, and checks the output against `output_schema` afterwards.
 */
// biome-ignore lint/suspicious/noExplicitAny: a handler without generated types reads its input freely
export function defineHandler<Input = any, Output = any>(handler: Handler<Input, Output>): Handler<Input, Output> {
  return handler;
}

/** The invocation's answer. `output` must fit the contract's `output_schema` and be JSON. */
export function reply<Output>(output: Output): Reply<Output> {
  return { [replyBrand]: true, output };
}

/** True for what `reply()` made, in this or another loaded copy of this module. */
export function isReply(value: unknown): value is Reply {
  return typeof value === "object" && value !== null && (value as Partial<Reply>)[replyBrand] === true;
}
