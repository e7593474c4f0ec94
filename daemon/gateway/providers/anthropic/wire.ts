// Anthropic's Messages API, version 2023-06-01.
import { sendableJson } from "#daemon/gateway/format/sendable-json.ts";
import { endpointUnder } from "../endpoint.ts";
import { claudeThoughts } from "../thoughts/claude.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { Wire } from "../wire.ts";
import { readMessage } from "./answer.ts";
import { anthropicFailure } from "./errors.ts";
import { withImages } from "./images.ts";
import { anthropicLongest, anthropicRequest, anthropicUnsupported } from "./request.ts";
import { anthropicDecoder } from "./stream.ts";

const VENDOR = "https://api.anthropic.com";

/** `thoughts` remembers the thinking of turns that called tools. */
export function anthropicWire(thoughts: ThoughtMemory): Wire {
  return {
    kind: "anthropic",
    passesThrough: false,
    unsupported: anthropicUnsupported,
    longestAnswer: anthropicLongest,
    async prepare(call, target, io) {
      const asked = await withImages(call.request, io);
      const request = call.user === null ? asked : { ...asked, user: call.user };
      const { body, notes, jsonTool, memberNames, beta } = anthropicRequest(
        request,
        target,
        claudeThoughts(thoughts, call.caller),
      );
      const { origin, pathname, search } = new URL(endpointUnder(target.baseUrl ?? VENDOR, "/v1/messages", /\/v1$/));
      const headers = {
        "content-type": "application/json",
        accept: "*/*",
        "accept-encoding": "identity",
        "anthropic-version": "2023-06-01",
        // Beside those of magic.yaml.
        ...(beta ? { "anthropic-beta": [target.headers?.["anthropic-beta"], beta].filter(Boolean).join(",") } : {}),
        ...(target.credentials.apiKey ? { "x-api-key": target.credentials.apiKey } : {}),
        ...(call.traceparent ? { traceparent: call.traceparent } : {}),
      };
      return {
        request: { origin, method: "POST", path: pathname + search, headers, body: sendableJson(body) },
        notes,
        jsonTool,
        memberNames,
      };
    },
    read: (body, context) => readMessage(body, context, thoughts),
    decoder: (context, emit) => anthropicDecoder(context, emit, thoughts),
    failure: anthropicFailure,
  };
}
