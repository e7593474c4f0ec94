// What becomes of connections that bring no request in time.
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import fastify, { type FastifyReply } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useActivity } from "#daemon/http/activity.ts";
import { answerMalformed } from "#daemon/http/client-error.ts";
import { idleCloser } from "#daemon/http/listener.ts";
import { useRequestEnd } from "#daemon/http/request-end.ts";
import { createLogger } from "#daemon/telemetry/log.ts";

const server = createServer({ headersTimeout: 50, connectionsCheckingInterval: 20 }, (_request, response) =>
  response.end("served"),
).on("clientError", answerMalformed);
beforeAll(() => new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** What comes back for what is sent in turn, a fifth of a second apart. */
function said(...parts: string[]): Promise<string> {
  return saidBy((server.address() as AddressInfo).port, parts);
}

async function saidBy(port: number, parts: readonly string[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
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

test("one that brings empty lines alone once its time is over is answered, and not kept for ever", async () => {
  expect(await said("", "\r\n", "")).toMatch(/^HTTP\/1\.1 408 /);
  expect(await said("", "\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n")).toMatch(/^HTTP\/1\.1 200 .*served$/s);
});

/** A server, what it says once a request is there, and what closes its idle connections. */
async function closable(answer: (reply: FastifyReply) => unknown) {
  const app = fastify({ clientErrorHandler: (error, socket) => answerMalformed(error, socket, newestOn) });
  useRequestEnd(app, createLogger({ sinks: [] }));
  const { newestOn, heldBy } = useActivity(app);
  const closeIdle = idleCloser(app.server, false, newestOn);
  app.addHook("onRequest", (_request, reply) => answer(reply));
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { app, heldBy, closeIdle, port: (app.server.address() as AddressInfo).port };
}

test("silent ones and those with half a head are closed when the server is to end, one whose answer is awaited is not", async () => {
  const { app, closeIdle, port } = await closable((reply) => setTimeout(() => reply.send("served"), 100));
  const idle = ["", "GET / HTTP/1.1\r\nHost:", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"].map((sent) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(sent));
    return new Promise((resolve) => socket.once("close", resolve).resume());
  });
  await sleep(250);
  const answer = fetch(`http://127.0.0.1:${port}/`);
  await new Promise((resolve) => app.server.once("request", resolve));
  const closed = app.close();
  closeIdle();
  await Promise.all(idle);
  expect(await (await answer).text()).toBe("served");
  closeIdle();
  await closed;
});

test("one that is still sending what was refused is not cut off from its answer", async () => {
  const { app, closeIdle, port } = await closable((reply) => reply.code(413).send("too large"));
  const socket = connect(port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf");
  await new Promise((resolve) => socket.once("data", resolve));
  const closed = app.close();
  closeIdle();
  socket.write(" more");
  await sleep(50);
  expect(socket.destroyed).toBe(false);
  closeIdle();
  await closed;
});

test("what was refused before it had come whole is an open request until it has, or until its connection ends", async () => {
  const { app, heldBy, port } = await closable((reply) => reply.code(401).send("who are you"));
  const socket = connect(port, "127.0.0.1");
  const refused = async () => {
    socket.write("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf");
    await new Promise((resolve) => socket.once("data", resolve));
    expect(await heldBy()).toBe("open requests");
  };
  await refused();
  socket.write(" more");
  await expect.poll(heldBy).toBeUndefined();
  await refused();
  socket.destroy();
  await expect.poll(heldBy).toBeUndefined();
  await app.close();
});

test("what is no HTTP is answered behind the requests that came before it, and once", async () => {
  const { app, port } = await closable((reply) => setTimeout(() => reply.send("served"), 300));
  const request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const inTurn = /^HTTP\/1\.1 200 .*servedHTTP\/1\.1 200 .*servedHTTP\/1\.1 400 (?!.*HTTP\/1\.1)/s;
  expect(await saidBy(port, [`${request}${request}no request\r\n`, "nor this\r\n", ""])).toMatch(inTurn);
  await app.close();
});

test("one that was answered before its body broke off gets no second answer", async () => {
  const { app, port } = await closable((reply) => reply.code(401).send("who are you"));
  const head = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  expect(await saidBy(port, [head, "no chunk\r\n"])).toMatch(/^HTTP\/1\.1 401 (?!.*HTTP\/1\.1)/s);
  await app.close();
});

test("one whose body nobody reads is answered all the same where it breaks off", async () => {
  const { app, port } = await closable((reply) => setTimeout(() => reply.send("served"), 300));
  const head = "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  expect(await saidBy(port, [`${head}no chunk\r\n`, "", ""])).toMatch(/^HTTP\/1\.1 200 .*served$/s);
  await app.close();
});

test("a stream that goes to one whose body breaks off ends with the connection, and nothing else does", async () => {
  const { app, port, heldBy } = await closable((reply) => reply.send(Readable.from(endless())));
  for (const broken of ["no chunk\r\n", ""]) {
    const head = "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    expect(await saidBy(port, [head, broken])).toMatch(/^HTTP\/1\.1 200 (?!.*HTTP\/1\.1)/s);
  }
  await expect.poll(heldBy).toBeUndefined();
  await app.close();
});

async function* endless() {
  for (;;) {
    yield "line\n";
    await sleep(5);
  }
}
