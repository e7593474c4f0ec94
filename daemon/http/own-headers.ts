// What every answer of a daemon carries, whoever writes it.
import { headers as names, PROTOCOL } from "#contract/protocol.ts";

const protocol = String(PROTOCOL);

export function ownHeaders(requestId: string) {
  return { [names.requestId]: requestId, [names.protocol]: protocol, "x-content-type-options": "nosniff" };
}
