// magic chat: one question, or a conversation at a terminal; the answer is streamed, and what it cost stands on stderr.
import { type ChatMessage, type ChatSummary, streamChat } from "#client/gateway/chat.ts";
import type { ApiClient } from "#client/http.ts";
import { gatewayClientOf } from "#commands/client-of.ts";
import { type Context, defineCommand } from "#commands/command.ts";
import { readTextInput } from "#commands/json-input.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { askLine } from "#output/prompt.ts";

interface Options {
  readonly model?: string;
  readonly system?: string;
  readonly maxTokens?: string;
  readonly temperature?: string;
}

export default defineCommand<Options>({
  configure: (command) =>
    command
      .argument("[prompt...]", "what to say; @FILE, or - for standard input; without one, a conversation begins")
      .option("-m, --model <model>", "a model, an alias or a policy (default: gateway.default)")
      .option("--system <text>", "the system message, or @FILE")
      .option("--max-tokens <n>", "the longest answer")
      .option("--temperature <t>", "0 to 2"),
  async run(context) {
    const { args, options, output } = context;
    const words = [args[0] ?? []].flat().join(" ");
    const body = bodyOf(options);
    if (words === "" && !output.interactive)
      throw new MagicError("usage", "Missing: <prompt>.", { extra: { missing: ["<prompt>"] } });
    const client = await gatewayClientOf(context);
    const system: ChatMessage[] = options.system
      ? [{ role: "system", content: await readTextInput(options.system, "--system") }]
      : [];
    if (words === "") return converse(context, client, body, system);
    const prompt = words === "-" || words.startsWith("@") ? await readTextInput(words, "<prompt>") : words;
    if (prompt.trim() === "") throw new MagicError("usage", "The prompt is empty.");
    const messages = [...system, { role: "user", content: prompt } as const];
    if (output.format === "text") return void (await say(context, client, { ...body, messages }));
    const answer = await client.request("POST", "/v1/chat/completions", {
      body: { ...body, messages },
      signal: context.signal,
    });
    output.result(answer);
  },
});

function bodyOf({ model, maxTokens, temperature }: Options): Record<string, unknown> {
  const number = (text: string, flag: string) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value))
      throw new MagicError("usage", `${flag} ${text} is not a number.`);
    return value;
  };
  return {
    ...(model !== undefined && { model }),
    ...(maxTokens !== undefined && { max_tokens: number(maxTokens, "--max-tokens") }),
    ...(temperature !== undefined && { temperature: number(temperature, "--temperature") }),
  };
}

async function say(context: Context<Options>, client: ApiClient, body: Record<string, unknown>): Promise<ChatSummary> {
  const { output, signal } = context;
  let shown = false;
  const show = (text: string) => {
    shown = true;
    output.fragment(text);
  };
  const summary = await streamChat(client, body, show, signal).catch((error: unknown) => {
    if (shown) output.fragment("\n");
    throw error;
  });
  output.fragment("\n");
  const short = fallsShort[summary.finish_reason ?? ""];
  if (short) output.warn(short);
  output.note(output.paint.dim(costLine(summary)));
  return summary;
}

/** What an answer that did not come to its own end is not to be taken for. */
const fallsShort: Readonly<Record<string, string>> = {
  length: "The answer is cut off: it reached --max-tokens, or the longest that the model gives.",
  content_filter: "The provider's filter kept back the answer, or the rest of it.",
};

async function converse(
  context: Context<Options>,
  first: ApiClient,
  body: Record<string, unknown>,
  system: readonly ChatMessage[],
): Promise<void> {
  const messages = [...system];
  const { output } = context;
  let client = first;
  let lost = false;
  output.note(output.paint.dim("An empty line or Ctrl-C ends the conversation."));
  for (;;) {
    const line = await askLine(output.paint.bold("you: "));
    // The cursor stands behind the question.
    if (line === null) output.note("");
    const content = line?.trim();
    if (!content) return;
    const question = { role: "user", content } as const;
    // By now another daemon may run, or the one that was lost be gone: as it ends it still looks alive.
    if (lost) client = await gatewayClientOf(context).catch(() => client);
    try {
      const { text } = await say(context, client, { ...body, messages: [...messages, question] });
      messages.push(question, { role: "assistant", content: text });
      lost = false;
    } catch (error) {
      // What was said before is not to be lost for one answer.
      if (!isMagicError(error) || error.code === "interrupted") throw error;
      output.warn(`${error.message} The question is not part of the conversation: ask it again.`);
      lost = error.code === "daemon_unavailable";
    }
  }
}

function costLine({ usage, provider, model, request_id }: ChatSummary): string {
  const cost = usage?.cost_usd;
  const price = cost === undefined || cost === null ? "cost unknown" : `$${Number(cost.toPrecision(6))}`;
  const tokens = usage ? `${usage.prompt_tokens} + ${usage.completion_tokens} tokens, ` : "";
  return `${provider ?? "?"}/${model ?? "?"}: ${tokens}${price}, request ${request_id ?? "?"}`;
}
