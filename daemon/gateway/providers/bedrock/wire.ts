// AWS Bedrock's Converse API, signed with SigV4 (service `bedrock`) or with an API key as Bearer.
import { AwsV4Signer } from "aws4fetch";
import { sendableJson } from "#daemon/gateway/format/sendable-json.ts";
import type { UpstreamRequest } from "#daemon/gateway/upstream/exchange.ts";
import type { ChatCall, Target } from "../adapter.ts";
import { endpointUnder } from "../endpoint.ts";
import { failure, UpstreamError } from "../failure.ts";
import { refusing } from "../refusing.ts";
import { claudeThoughts } from "../thoughts/claude.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import type { Relent, Wire } from "../wire.ts";
import { readConverse } from "./answer.ts";
import { bedrockFailure } from "./errors.ts";
import { thoughtFormat } from "./models.ts";
import { bedrockUnsupported, converseLongest, converseRequest } from "./request.ts";
import { bedrockDecoder } from "./stream.ts";

/** `thoughts` remembers the thinking of turns that called tools. */
export function bedrockWire(thoughts: ThoughtMemory): Wire {
  const unstreamed = refusing();
  return {
    kind: "bedrock",
    passesThrough: false,
    unsupported: bedrockUnsupported,
    longestAnswer: converseLongest,
    async prepare(call, target, io) {
      const { body, notes, jsonTool, memberNames } = await converseRequest(
        call.request,
        target,
        io,
        claudeThoughts(thoughts, call.caller, thoughtFormat(target.model)),
      );
      const text = sendableJson(body);
      const whole = !call.request.stream || ("toolConfig" in body && unstreamed.has(target));
      const request = await signed(text, whole ? "converse" : "converse-stream", call, target);
      const relent: Relent = (status, refusal) => {
        if (whole || status !== 400 || !UNSTREAMED.test(refusal)) return null;
        return { request: signed(text, "converse", call, target), worked: () => unstreamed.add(target) };
      };
      return { request, relent, notes, jsonTool, memberNames };
    },
    read: (body, context) => readConverse(body, context, thoughts),
    decoder: (context, emit) => bedrockDecoder(context, emit, thoughts),
    failure: bedrockFailure,
  };
}

/** What Llama, Jamba and others say of tools in a stream; whole they take them. */
const UNSTREAMED = /tool use in streaming mode/i;

async function signed(
  body: string,
  action: "converse" | "converse-stream",
  { traceparent }: ChatCall,
  target: Target,
): Promise<UpstreamRequest> {
  const region = target.credentials.region ?? "us-east-1";
  const base = target.baseUrl ?? `https://bedrock-runtime.${region}.amazonaws.com`;
  const url = new URL(endpointUnder(base, `/model/${encodeURIComponent(target.model)}/${action}`));
  const headers = {
    ...(await authorization(url, body, region, target)),
    accept: "*/*",
    "accept-encoding": "identity",
    ...(traceparent ? { traceparent } : {}),
  };
  return { origin: url.origin, method: "POST", path: url.pathname + url.search, headers, body };
}

async function authorization(url: URL, body: string, region: string, target: Target): Promise<Record<string, string>> {
  const { apiKey, accessKeyId, secretAccessKey, sessionToken } = target.credentials;
  const type = { "content-type": "application/json" };
  if (apiKey) return { ...type, authorization: `Bearer ${apiKey}` };
  if (!accessKeyId || !secretAccessKey) {
    throw new UpstreamError(failure("auth", `${target.provider} has neither an api_key nor AWS access keys.`));
  }
  const signer = new AwsV4Signer({
    method: "POST",
    url: url.href,
    headers: type,
    body,
    accessKeyId,
    secretAccessKey,
    ...(sessionToken ? { sessionToken } : {}),
    service: "bedrock",
    region,
  });
  const signed = await signer.sign();
  const { host: _host, ...headers } = Object.fromEntries(signed.headers.entries());
  return headers;
}
