import { createServer, type RequestListener } from "node:http";
import { createServer as createTcpServer, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { createEgress } from "#daemon/egress/egress.ts";
import { listen } from "#test/listen.ts";

async function upstream(listener: RequestListener) {
  const { address, origin, close } = await listen(createServer(listener));
  const egress = createEgress({ allowPrivate: () => [address] });
  onTestFinished(async () => {
    await egress.close();
    await close();
  });
  return { egress, url: `${origin}/` };
}

test("the host header stays the name that was asked for", async () => {
  const { egress, url } = await upstream((request, response) => response.end(request.headers.host));
  expect(String((await egress.request(url)).body)).toBe(new URL(url).host);
});

test("a body over the cap is refused, compressed or not", async () => {
  const { egress, url } = await upstream((request, response) => {
    if (request.url === "/bomb")
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(5_000_000)));
    else response.end(Buffer.alloc(20_000));
  });
  await expect(egress.request(url, { maxBytes: 10_000 })).rejects.toMatchObject({ code: "upstream_error" });
  await expect(egress.request(`${url}bomb`, { maxBytes: 100_000 })).rejects.toMatchObject({ code: "upstream_error" });
});

test("where only status and headers count, no body changes them", async () => {
  const { egress, url } = await upstream((request, response) => {
    const name = request.url?.slice(1) ?? "";
    response.writeHead(202, { "x-name": name, ...(name === "gzip" && { "content-encoding": "gzip" }) });
    if (name === "long") response.end(Buffer.alloc(5_000_000));
    else if (name === "silent") response.flushHeaders();
    else if (name === "cut") response.write("x", () => request.socket.destroy());
    else response.end("no gzip");
  });
  for (const name of ["long", "silent", "cut", "gzip", "plain"]) {
    const answer = await egress.request(url + name, { ignoreBody: true, timeoutMs: 1_000, maxBytes: 10_000 });
    expect(answer, name).toMatchObject({ status: 202, headers: { "x-name": name }, body: Buffer.alloc(0) });
  }
});

test("silence ends with a time-out, a lost server with an error, a caller that leaves with client_closed", async () => {
  const { egress, url } = await upstream((request, response) => {
    if (request.url === "/reset") request.socket.destroy();
    else if (request.url === "/half") response.write("x");
  });
  await expect(egress.request(url, { timeoutMs: 150 })).rejects.toMatchObject({ code: "upstream_timeout" });
  await expect(egress.request(`${url}half`, { timeoutMs: 150 })).rejects.toMatchObject({ code: "upstream_timeout" });
  await expect(egress.request(`${url}reset`)).rejects.toMatchObject({
    code: "upstream_error",
    message: expect.stringMatching(/closed the connection before its answer was complete|broke the connection off/),
  });
  await expect(egress.request(url, { signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
    code: "client_closed",
  });
});

test("a handshake that does not come to its end is ended by the exchange's time, and by a caller that leaves", async () => {
  const sockets = new Set<Socket>();
  const { address, close } = await listen(createTcpServer((socket) => sockets.add(socket)));
  const egress = createEgress({ allowPrivate: () => [address], connectTimeoutMs: 3_600_000 });
  onTestFinished(async () => {
    await egress.close();
    for (const socket of sockets) socket.destroy();
    await close();
  });
  const url = `https://${address}/`;
  await expect(egress.request(url, { timeoutMs: 150 })).rejects.toMatchObject({ code: "upstream_timeout" });
  await expect(egress.request(url, { signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
    code: "client_closed",
  });
});
