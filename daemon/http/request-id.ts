// A request's id: the caller's X-Request-Id where it is well-formed, else one of ours.
import type { IncomingMessage } from "node:http";
import { REQUEST_ID } from "#contract/protocol.ts";
import { newId } from "#shared/ids.ts";

export function requestIdOf(raw: IncomingMessage): string {
  const given = raw.headers["x-request-id"];
  return typeof given === "string" && REQUEST_ID.test(given) ? given : newId("req");
}
