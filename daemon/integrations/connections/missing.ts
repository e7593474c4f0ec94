// What is told of a connection that is not there.
import { MagicError } from "#contract/errors.ts";

export function missing(id: string): MagicError {
  return new MagicError("not_found", `There is no connection ${id} in this environment.`);
}
