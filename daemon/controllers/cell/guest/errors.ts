// Errors across the channel: the daemon's become what a handler can catch, a handler's become plain data.
import type { GuestError } from "../frames.ts";
import { defineProperty, ErrorOf, StringOf, stringifyJson, stringSlice } from "./primordials.ts";

const handlerBrand = Symbol.for("magic.handler.error");
const MAX_MESSAGE = 8 * 1024;
const MAX_STACK = 16 * 1024;
const MAX_CAUSES = 4;

/** An error that `isHandlerError` of magic/sdk recognises; made where the handler awaits, so that its stack names the handler's line. */
export function toError(error: GuestError): Error {
  const made = new ErrorOf(error.message);
  defineProperty(made, "name", { value: error.name, configurable: true, writable: true });
  defineProperty(made, "code", { value: error.code, enumerable: true, configurable: true, writable: true });
  if (error.status !== undefined) defineProperty(made, "status", { value: error.status, enumerable: true });
  if (error.add !== undefined) defineProperty(made, "add", { value: error.add, enumerable: true });
  defineProperty(made, handlerBrand, { value: true });
  return made;
}

/** What a refused or failed call throws: where its own signal ended it, what the signal was aborted with, as the web has it. */
export function failureOf(error: GuestError, signal: AbortSignal | undefined): unknown {
  return error.code === "aborted" && signal?.aborted ? signal.reason : toError(error);
}

/** What was thrown, as data. Reads hostile objects: getters may throw, fields may be anything. */
export function fromThrown(thrown: unknown): GuestError {
  try {
    if (typeof thrown !== "object" || thrown === null)
      return { name: "Error", message: cut(`thrown: ${StringOf(thrown)}`, MAX_MESSAGE) };
    const error = thrown as Record<PropertyKey, unknown>;
    if (!isError(error))
      return { name: "Error", message: cut(`thrown: ${stringifyJson(error) ?? "an object"}`, MAX_MESSAGE) };
    const stack = error["stack"];
    const data: Record<string, unknown> = {
      name: cut(StringOf(error["name"] ?? "Error"), 100),
      message: cut(StringOf(error["message"] ?? ""), MAX_MESSAGE),
    };
    if (typeof stack === "string") data["stack"] = cut(stack + causesOf(error), MAX_STACK);
    if (error[handlerBrand] === true && typeof error["code"] === "string") {
      data["code"] = cut(error["code"], 64);
      if (typeof error["add"] === "string") data["add"] = cut(error["add"], MAX_MESSAGE);
    }
    return data as unknown as GuestError;
  } catch {
    return { name: "Error", message: "an error that cannot be read was thrown" };
  }
}

/** What led to it, as Node prints it: packages wrap what went wrong in a "fetch failed". */
function causesOf(error: Record<PropertyKey, unknown>): string {
  let text = "";
  let cause = error["cause"];
  for (let depth = 0; depth < MAX_CAUSES && typeof cause === "object" && cause !== null; depth++) {
    const { stack, message, cause: next } = cause as Record<string, unknown>;
    text += `\n[cause]: ${StringOf(stack ?? message ?? "an object")}`;
    cause = next;
  }
  return text;
}

/** Of this realm or another, or shaped like one. */
function isError(thrown: Record<PropertyKey, unknown>): boolean {
  return thrown instanceof ErrorOf || typeof thrown["message"] === "string" || typeof thrown["stack"] === "string";
}

function cut(text: string, most: number): string {
  return text.length > most ? `${stringSlice(text, 0, most)}…` : text;
}
