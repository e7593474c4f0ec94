// An OpenAI-compatible upstream that answers at once: whole, or as a stream of 100 events 10 ms apart.
import { createServer } from "node:http";

const CHUNKS = 100;
const GAP_MS = 10;
const usage = {
  prompt_tokens: 25,
  completion_tokens: 12,
  total_tokens: 37,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
};
const head = { id: "chatcmpl-Bench0000000000000000000001", created: 1_760_000_000, model: "gpt-4o-mini-2024-07-18" };
const message = { role: "assistant", content: "Hello! This is a fixed answer.", refusal: null, annotations: [] };
const whole = Buffer.from(
  JSON.stringify({
    ...head,
    object: "chat.completion",
    choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
    usage,
  }),
);
const event = (more: object) =>
  Buffer.from(`data: ${JSON.stringify({ ...head, object: "chat.completion.chunk", ...more })}\n\n`);
const delta = event({ choices: [{ index: 0, delta: { content: " token" }, logprobs: null, finish_reason: null }] });
const last = Buffer.concat([
  event({ choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }] }),
  event({ choices: [], usage }),
  Buffer.from("data: [DONE]\n\n"),
]);

createServer((request, response) => {
  let streamed = false;
  request.on("data", (part: Buffer) => {
    streamed ||= part.includes('"stream":true');
  });
  request.on("end", () => {
    if (!streamed) {
      response.writeHead(200, { "content-type": "application/json", "content-length": whole.length });
      response.end(whole);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    let sent = 0;
    const timer = setInterval(() => {
      if (sent++ < CHUNKS) response.write(delta);
      else {
        clearInterval(timer);
        response.end(last);
      }
    }, GAP_MS);
    response.on("close", () => clearInterval(timer));
  });
}).listen(Number(process.env["PORT"]), "127.0.0.1", () => console.log("ready"));
