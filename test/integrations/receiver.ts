// A receiver of webhooks on loopback, and a project that may reach it.
import { writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { listen } from "#test/listen.ts";

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly at: number;
}

export interface Receiver {
  readonly url: string;
  readonly address: string;
  readonly received: Received[];
  /** What to answer: status, headers and body; asked for every request. */
  answer: (received: Received) => { status: number; headers?: Record<string, string>; body?: Buffer } | "hang";
}

export async function startReceiver(): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const one = { headers: request.headers, body: Buffer.concat(chunks).toString(), at: Date.now() };
      received.push(one);
      const answer = receiver.answer(one);
      if (answer !== "hang") response.writeHead(answer.status, answer.headers).end(answer.body);
    });
  });
  const { address, origin, close } = await listen(server);
  onTestFinished(close);
  const receiver: Receiver = { url: `${origin}/hook`, address, received, answer: () => ({ status: 200 }) };
  return receiver;
}

export function writeProject(root: string, settings: Record<string, unknown>): void {
  writeFileSync(join(root, "magic.yaml"), JSON.stringify({ version: 1, ...settings }));
}
