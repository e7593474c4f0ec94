// Google's Gemini API, v1beta: `generateContent`, and `streamGenerateContent` as server-sent events.
import { sendableJson } from "#daemon/gateway/format/sendable-json.ts";
import { endpointUnder } from "../endpoint.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { Wire } from "../wire.ts";
import { readAnswer } from "./answer.ts";
import { googleFailure } from "./errors.ts";
import { googleRequest, googleUnsupported, isTold, leftOut } from "./request.ts";
import { googleDecoder } from "./stream.ts";

const VENDOR = "https://generativelanguage.googleapis.com";

/** `signatures` remembers those of calls whose ids are Gemini's own, and so cannot carry them. */
export function googleWire(signatures: ThoughtMemory): Wire {
  return {
    kind: "google",
    passesThrough: false,
    unsupported: googleUnsupported,
    async prepare(call, target, io) {
      const { body, names } = await googleRequest(call.request, target, signatures, call.caller, io);
      const model = target.model.split("/").map(encodeURIComponent).join("/");
      const path = model.includes("/") ? model : `models/${model}`;
      // Of several choices it is known at the end alone whether all have come: too few are a refusal, which no stream can become.
      const streams = call.request.stream && (call.request.n ?? 1) === 1;
      const method = streams ? "streamGenerateContent?alt=sse" : "generateContent";
      const url = endpointUnder(target.baseUrl ?? VENDOR, `/v1beta/${path}:${method}`, /\/v1(beta)?$/);
      const { origin, pathname, search } = new URL(url);
      const headers = {
        "content-type": "application/json",
        accept: "*/*",
        "accept-encoding": "identity",
        ...(target.credentials.apiKey ? { "x-goog-api-key": target.credentials.apiKey } : {}),
        ...(call.traceparent ? { traceparent: call.traceparent } : {}),
      };
      const json = call.request.response_format?.type === "json_schema";
      const responseFormat = isTold(call.request, target.model) ? "emulated" : json ? "native" : undefined;
      return {
        request: { origin, method: "POST", path: pathname + search, headers, body: sendableJson(body) },
        notes: { dropped: leftOut(call.request, target.model), responseFormat },
        toolNames: names.own,
      };
    },
    read: (body, context) => readAnswer(body, context, signatures),
    decoder: (context, emit) => googleDecoder(context, emit, signatures),
    failure: googleFailure,
  };
}
