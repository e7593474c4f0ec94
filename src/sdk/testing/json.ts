// What passes between a handler and the daemon is JSON of bounded size; the fakes pass on nothing else.
import { HandlerError } from "#sdk/errors.ts";

/** As it arrives on the other side. Throws what JSON.stringify throws: bigint, circles. */
export function asJson(value: unknown): unknown {
  const text = JSON.stringify(value);
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}

/** Text of bounded length. @throws `invalid_request`, `limit_exceeded`. */
export function bounded(value: unknown, what: string, most = 1024 * 1024): string {
  if (typeof value !== "string") throw new HandlerError("invalid_request", `${what} must be text`);
  if (value.length > most) throw new HandlerError("limit_exceeded", `${what} has more than ${most} characters`);
  return value;
}
