// What becomes of connections that bring no request in time.
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { answerMalformed } from "#daemon/http/client-error.ts";

const server = createServer({ headersTimeout: 50, connectionsCheckingInterval: 20 }, (_request, response) =>
  response.end("served"),
).on("clientError", answerMalformed);
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** What comes back for what is sent in turn, a fifth of a second apart. */
async function said(...parts: string[]): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  let answer = "";
  socket.on("data", (bytes) => {
    answer += bytes;
  });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  for (const part of parts) {
    if (part) socket.write(part);
    await sleep(200);
  }
  socket.end();
  await closed;
  return answer;
}

test("a connection that a client opened ahead is served when it asks", async () => {
  expect(await said("", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 .*served$/s);
});

test("half a head is answered by 408 in time, also behind a whole one", async () => {
  expect(await said("GET / HTTP/1.1\r\n")).toMatch(/^HTTP\/1\.1 408 /);
  const second = await said("", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET / HTTP/1.1\r\n");
  expect(second).toMatch(/^HTTP\/1\.1 200 .*HTTP\/1\.1 408 /s);
});
