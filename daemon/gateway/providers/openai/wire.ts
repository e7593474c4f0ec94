// OpenAI's chat completions and embeddings, and every server that speaks them (vLLM, Ollama, Groq, Mistral, xAI...): the client's bytes
// go on with the model's name exchanged.
import { string } from "#contract/json-object.ts";
import { forwardBody } from "#daemon/gateway/format/forward.ts";
import type { ChatRequest, Message } from "#daemon/gateway/format/request.ts";
import type { UpstreamRequest } from "#daemon/gateway/upstream/exchange.ts";
import type { ChatCall, EmbeddingCall, Target } from "../adapter.ts";
import { endpointUnder } from "../endpoint.ts";
import { secretsOf } from "../secrets.ts";
import type { ThoughtMemory } from "../thoughts/memory.ts";
import { lacksContent, withReasoning } from "../thoughts/reasoning.ts";
import type { Prepared, Wire } from "../wire.ts";
import { type Addition, type Additions, additions } from "./additions.ts";
import { unmarked } from "./cache-marks.ts";
import { readCompletion } from "./completion.ts";
import { embeddingBody, readEmbeddings } from "./embeddings.ts";
import { openaiFailure } from "./errors.ts";
import { portableMessages } from "./messages.ts";
import { type Address, addressOf, namedLimit, serviceOf } from "./services.ts";
import { openaiDecoder } from "./stream.ts";

const VENDOR = "https://api.openai.com/v1";
/** As an address ends that was copied from an example of a call. */
const OWN = /\/(chat\/completions|embeddings)$/;

/** `thoughts` remembers the reasoning of turns that called tools. */
export function openaiWire(thoughts: ThoughtMemory): Wire {
  return openaiFormat("openai", thoughts, (target, path) => ({
    url: endpointUnder(target.baseUrl ?? VENDOR, path, OWN),
    headers: target.credentials.apiKey ? { authorization: `Bearer ${target.credentials.apiKey}` } : {},
  }));
}

/** A wire of OpenAI's format at an address and with headers of its own. */
export function openaiFormat(
  kind: "openai" | "azure",
  thoughts: ThoughtMemory,
  endpoint: (target: Target, path: string) => { url: string; headers: Record<string, string> },
): Wire {
  const wayTo = (path: string) =>
    remembered((target) => {
      const { url, headers } = endpoint(target, path);
      return { ...addressOf(url), headers: { ...common, ...headers } };
    });
  const [toChat, toEmbeddings] = [wayTo("/chat/completions"), wayTo("/embeddings")];
  const { ask } = additions();
  return {
    kind,
    passesThrough: true,
    unsupported: () => [],
    prepare(call, target): Prepared {
      const { request, relent } = ask(
        target,
        (one) => adds(one, call) && !serviceOf(target).narrow,
        (given) => post(toChat(target), chatBody(call, target, thoughts, given), call.traceparent),
      );
      const native = call.request.response_format?.type === "json_schema";
      return { request, relent, notes: { dropped: [], responseFormat: native ? "native" : undefined } };
    },
    read: (body, context) => readCompletion(body, context, thoughts),
    decoder: (context, emit) => openaiDecoder(context, emit, thoughts),
    failure: (status, headers, body, target) => openaiFailure(status, headers, body, secretsOf(target)),
    embeddings: {
      prepare: (call, target) =>
        ask(
          target,
          (one) => one === "user" && addsUser(call),
          (given) => post(toEmbeddings(target), embeddingBody(call, target, given)),
        ),
      read: readEmbeddings,
    },
  };
}

// What the client has put there itself is its own to be refused.
function adds(addition: Addition, call: ChatCall): boolean {
  const { request } = call;
  if (addition === "user") return addsUser(call);
  return request.stream === true && Object.keys(request.stream_options ?? {}).every((name) => name === "include_usage");
}

function addsUser({ request, user }: ChatCall | EmbeddingCall): boolean {
  return user !== null && request.user !== user;
}

/** Where requests to a path of a target go, and what goes along with each. */
interface Way extends Address {
  readonly headers: Readonly<Record<string, string>>;
}

function post({ origin, path, headers }: Way, body: Buffer | string, traceparent?: string): UpstreamRequest {
  return { origin, method: "POST", path, headers: traceparent ? { ...headers, traceparent } : headers, body };
}

// What is the same for all requests to a target is made once.
function remembered(make: (target: Target) => Way): (target: Target) => Way {
  const known = new WeakMap<Target, Way>();
  return (target) => {
    let way = known.get(target);
    if (!way) {
      way = make(target);
      known.set(target, way);
    }
    return way;
  };
}

const common = { "content-type": "application/json", accept: "*/*", "accept-encoding": "identity" };

function chatBody(call: ChatCall, target: Target, thoughts: ThoughtMemory, given: Additions): Buffer | string {
  const { request } = call;
  const changes = namedLimit(request, target);
  if (request.model !== target.model) changes["model"] = target.model;
  const { mistral: plain, narrow } = serviceOf(target);
  // Streams are metered whether the client asked or not; stream.ts shows the usage only to who asked.
  const bare = plain || !given.counting;
  if (request.stream && (bare || request.stream_options?.include_usage !== true)) {
    changes["stream_options"] = bare ? undefined : { ...request.stream_options, include_usage: true };
  }
  if (plain) Object.assign(changes, { user: undefined, ...mistralSeed(request) });
  else if (call.user !== null && request.user !== call.user) changes["user"] = given.user ? call.user : undefined;
  if (request.drop_unsupported !== undefined) changes["drop_unsupported"] = undefined;
  const marked = narrow && (call.raw === null || call.raw.includes('"cache_control"'));
  const said = reasoned(call, target, thoughts);
  const messages = portableMessages(marked ? unmarked(said, "content") : said, target);
  if (marked && Array.isArray(request.tools)) {
    const tools = unmarked(request.tools, "function");
    if (tools !== request.tools) changes["tools"] = tools;
  }
  if (messages !== request.messages) changes["messages"] = messages;
  return forwardBody(call.raw, request, changes);
}

function mistralSeed({ seed }: ChatRequest): object {
  return typeof seed === "number" ? { random_seed: seed, seed: undefined } : {};
}

// What this server thought, where the client left it out.
function reasoned({ request, caller }: ChatCall, target: Target, thoughts: ThoughtMemory): readonly Message[] {
  const { messages } = request;
  const { narrow, wantsReasoning } = serviceOf(target);
  if (narrow) return messages;
  const known = withReasoning(thoughts, caller, target, messages);
  if (!wantsReasoning || !known.some(lacksContent)) return known;
  return known.map((message) =>
    lacksContent(message) ? { ...message, reasoning_content: string(message.reasoning) || " " } : message,
  );
}
