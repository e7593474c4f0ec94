// A streamed chat completion, read event by event (server-sent events, HTML Standard section 9.2; OpenAI's chunks).
import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { ApiClient } from "#client/http.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

export interface ChatSummary {
  readonly text: string;
  readonly model: string | null;
  readonly finish_reason: string | null;
  readonly usage: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly cost_usd?: number | null;
  } | null;
  readonly request_id: string | null;
  readonly provider: string | null;
}

interface Chunk {
  readonly model?: string;
  readonly choices?: readonly {
    readonly delta?: { readonly content?: string | null; readonly refusal?: string | null };
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: ChatSummary["usage"];
  readonly error?: { readonly message?: string };
}

/** Sends `body` as a stream, hands every piece of text on, and resolves at its end. Throws for an error inside the stream too. */
export async function streamChat(
  client: ApiClient,
  body: Readonly<Record<string, unknown>>,
  onText: (text: string) => void,
  signal: AbortSignal,
): Promise<ChatSummary> {
  const answer = await client.send("POST", "/v1/chat/completions", {
    body: { ...body, stream: true, stream_options: { include_usage: true } },
    headers: { accept: "text/event-stream, application/json" },
    signal,
  });
  let text = "";
  let model: string | null = null;
  let finish: string | null = null;
  let usage: ChatSummary["usage"] = null;
  let done = false;
  const take = ({ data }: EventSourceMessage) => {
    if (data === "[DONE]") {
      done = true;
      return;
    }
    const chunk = JSON.parse(data) as Chunk;
    if (chunk.error) throw new MagicError("upstream_error", chunk.error.message ?? "The answer broke off.");
    model = chunk.model ?? model;
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices ?? []) {
      finish = choice.finish_reason ?? finish;
      // Why the model does not answer is what it says.
      const piece = choice.delta?.content || choice.delta?.refusal;
      if (!piece) continue;
      text += piece;
      onText(piece);
    }
  };
  const parser = createParser({ onEvent: take });
  const decoder = new TextDecoder();
  const broken = (cause?: unknown) =>
    new MagicError("upstream_error", "The answer broke off before its end.", { cause });
  try {
    for await (const bytes of answer.body ?? []) parser.feed(decoder.decode(bytes as Uint8Array, { stream: true }));
  } catch (error) {
    throw isMagicError(error) ? error : signal.aborted ? new MagicError("interrupted") : broken(error);
  }
  if (!done) throw broken();
  return {
    text,
    model,
    finish_reason: finish,
    usage,
    request_id: answer.headers.get("x-request-id"),
    provider: answer.headers.get("x-magic-provider"),
  };
}
