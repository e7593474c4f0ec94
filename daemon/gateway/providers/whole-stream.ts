// A whole answer where a stream was asked for, by a server that cannot stream: it has been charged, and what the client wants of it is
// there. It goes out as each choice's one chunk and its end.
import { fields } from "#contract/json-object.ts";
import { DONE } from "#daemon/gateway/format/sse.ts";
import type { TokenUsage } from "#daemon/gateway/format/usage.ts";
import { type AbortNotice, onAbort } from "#shared/abort.ts";
import type { FrameSink, Notes, StreamEnd, StreamOutcome, WholeBody } from "./adapter.ts";
import { failure } from "./failure.ts";

/** `body`: a completion of OpenAI's form as a client would get it. `asked`: for a usage chunk. */
export function wholeAsStream(
  body: WholeBody,
  usage: TokenUsage,
  asked: boolean,
  signal: AbortNotice,
  notes: Notes,
): StreamOutcome {
  async function pipe(sink: FrameSink): Promise<StreamEnd> {
    for (const frame of frames(body, asked)) {
      if (signal.aborted) return { result: "aborted", usage, failure: failure("aborted", "The client left.") };
      if (!sink.write(frame)) await roomIn(sink, signal);
    }
    return { result: "completed", usage, failure: null };
  }
  return { kind: "stream", notes, pipe };
}

/** Resolves when there is room again, or the call is over: who reads nothing is waited for no longer than it may last. */
export function roomIn(sink: FrameSink, signal: AbortNotice): Promise<void> {
  return new Promise((resolve) => {
    const forget = onAbort(signal, resolve);
    sink.drained().then(() => {
      forget();
      resolve();
    });
  });
}

function* frames(body: WholeBody, asked: boolean): Generator<string> {
  const { choices, usage, ...head } = JSON.parse(String(body));
  const chunk = (own: object[], counted: unknown = null) =>
    `data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", choices: own, ...(asked ? { usage: counted } : {}) })}\n\n`;
  for (const { index, message, logprobs = null, finish_reason } of choices) {
    yield chunk([{ index, delta: deltaOf(message), logprobs, finish_reason: null }]);
    yield chunk([{ index, delta: {}, logprobs: null, finish_reason }]);
  }
  if (asked) yield chunk([], usage);
  yield DONE;
}

// Calls of a stream say which one they are, whatever a server says of them: Gemini's imitation puts all in one place.
function deltaOf(message: object): object {
  const { tool_calls: calls, ...delta } = fields(message);
  if (!Array.isArray(calls)) return delta;
  return { ...delta, tool_calls: calls.map((call, index) => ({ ...fields(call), index })) };
}
