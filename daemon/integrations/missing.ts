// What is told of a resource that is not there.
import { MagicError } from "#contract/errors.ts";

export function missing(what: "connection" | "sync" | "run" | "webhook" | "delivery", id: string): MagicError {
  return new MagicError("not_found", `There is no ${what} ${id} in this environment.`);
}
