// Integers that no double is, in what a connection is made of.
import fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { useBodies } from "#daemon/http/body.ts";

test("ids beyond 2^53 keep their digits in the members that a route names", async () => {
  const app = fastify();
  onTestFinished(() => app.close());
  app.addHook("onRequest", async (request) => {
    request.route = request.routeOptions.config;
  });
  useBodies(app);
  app.post("/", { config: { exactIntegersIn: ["config", "metadata"] } }, async ({ body }) => body);
  const payload = String.raw`{"config":{"id":9007199254740993,"all":[-12345678901234567890,9007199254740991,0.9900000000000000000,1e3],"said":"\"9007199254740993, \\"},"limit":9007199254740993,"metadata":{"id":9007199254740993,"all":100000000000000000000,"low":-9007199254740992,"long":${"9".repeat(400)}}}`;
  for (const text of [payload, `\ufeff${payload}`]) {
    const answer = await app.inject({
      method: "POST",
      url: "/",
      headers: { "content-type": "application/json" },
      payload: text,
    });
    expect(answer.json()).toEqual({
      config: {
        id: "9007199254740993",
        all: ["-12345678901234567890", 9007199254740991, 0.99, 1000],
        said: '"9007199254740993, \\',
      },
      limit: 9007199254740992,
      metadata: { id: "9007199254740993", all: 1e20, low: -9007199254740992, long: "9".repeat(400) },
    });
  }
});
