// What is told of a connection that is not there, and of one that cannot be changed.
import { MagicError } from "#contract/errors.ts";

export function missing(id: string): MagicError {
  return new MagicError("not_found", `There is no connection ${id} in this environment.`);
}

export function changing(): MagicError {
  return new MagicError("conflict", "The connection is being changed by others: send it again.");
}
