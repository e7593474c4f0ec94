// The routes of development sessions, over a runtime that opens a session when it is told to.
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import fastify from "fastify";
import { expect, onTestFinished, test, vi } from "vitest";
import { developmentRoutes } from "#daemon/http/routes/development.ts";

test("a session whose listener has left before it was open is closed all the same", async () => {
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const close = vi.fn(async () => undefined);
  async function* events() {}
  const app = fastify();
  onTestFinished(() => app.close());
  const develop = async () => {
    ask();
    await opened;
    return { id: "dev_1", events: events(), reload: () => {}, close };
  };
  developmentRoutes(app, { controllers: { develop, stopDevelopment: async () => {} } as never });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const left = new Promise((resolve) => app.server.once("connection", (socket) => socket.once("close", resolve)));
  const socket = connect((app.server.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  const body = '{"folder":"/nowhere"}';
  socket.write(
    `POST /v1/dev/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  await asked;
  socket.destroy();
  await left;
  open();
  await vi.waitFor(() => expect(close).toHaveBeenCalled());
});
