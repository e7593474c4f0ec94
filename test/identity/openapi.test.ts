// The API's description: correct by a linter, complete in scopes and error answers, and true of what is answered.
import { createConfig, lintFromString } from "@redocly/openapi-core";
import fastify from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { errors } from "#contract/errors.ts";
import { scopes } from "#contract/identity.ts";
import { useDeprecation } from "#daemon/http/deprecation.ts";
import { startDaemon, type TestDaemon } from "./daemon.ts";

let daemon: TestDaemon;
let text: string;
// biome-ignore lint/suspicious/noExplicitAny: the document is walked
let document: any;
beforeAll(async () => {
  daemon = await startDaemon();
  const answer = await daemon.call("GET", "/openapi.json", { token: null });
  text = answer.text;
  document = answer.body;
});
afterAll(() => daemon.close());

test("the document is OpenAPI 3.1 without a problem of any severity", async () => {
  expect(document.openapi).toMatch(/^3\.1/);
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source: text, config });
  // The one operation that only sends a browser on.
  const redirects = "#/paths/~1v1~1connections~1oauth~1callback/get/responses";
  const found = problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`);
  expect(found.filter((one) => !(one.startsWith("operation-2xx-response") && one.endsWith(redirects)))).toEqual([]);
});

test("every operation names one scope of the catalogue, or that it is public, and how it fails", () => {
  for (const [path, item] of Object.entries<Record<string, Record<string, unknown>>>(document.paths))
    for (const [method, operation] of Object.entries(item)) {
      const where = `${method} ${path}`;
      const security = operation["security"] as { bearerAuth: string[] }[];
      expect(security, where).toBeDefined();
      if (security.length > 0) {
        const [required] = security;
        expect(required?.bearerAuth, where).toHaveLength(1);
        expect(scopes, where).toContain(required?.bearerAuth[0]);
        for (const status of ["401", "403", "429"]) expect(operation["responses"], where).toHaveProperty(status);
      }
      expect(operation["operationId"], where).toBeTypeOf("string");
      expect(operation["summary"], where).toBeTypeOf("string");
    }
});

test("POSTs that take an Idempotency-Key say so, and every error that an operation can give is named", () => {
  const parameters = (path: string) =>
    (document.paths[path].post.parameters ?? []).map((one: { in: string; name: string }) => `${one.in} ${one.name}`);
  expect(parameters("/v1/syncs")).toContain("header Idempotency-Key");
  expect(parameters("/v1/controllers/{name}/invoke")).toContain("header Idempotency-Key");
  expect(parameters("/v1/auth/token")).toEqual([]);
  for (const path of ["/v1/chat/completions", "/v1/embeddings"]) {
    expect(parameters(path)).toEqual(["header Idempotency-Key"]);
    expect(document.paths[path].post.requestBody.required).toBe(true);
  }
  for (const path of ["/v1/syncs/{id}/trigger", "/v1/keys/{id}/roll", "/v1/webhooks/{id}/roll"])
    expect(document.paths[path].post.requestBody.required, path).toBe(false);
  expect(document.paths["/v1/syncs/{id}"].patch.responses).toHaveProperty("409");
  expect(document.paths["/v1/health"].get.responses).toHaveProperty("403");
  // What is not ready says so in its own document; one that is being stopped refuses whatever is asked.
  for (const path of ["/health", "/v1/health"]) {
    const { content } = document.paths[path].get.responses["503"];
    expect(Object.keys(content).sort(), path).toEqual(["application/json", "application/problem+json"]);
    expect(content["application/json"].schema.required, path).toContain("checks");
  }
  for (const operation of [
    document.paths["/v1/connections/{id}/objects"].get,
    document.paths["/v1/controllers/{name}/invoke"].post,
  ])
    for (const status of ["502", "504"]) expect(operation.responses).toHaveProperty(status);
  // A body is read and refused also where none is asked for.
  for (const [path, item] of Object.entries<Record<string, { responses: unknown }>>(document.paths))
    for (const [method, { responses }] of Object.entries(item))
      for (const status of method === "get" ? ["408", "431"] : ["408", "413", "415", "431"])
        expect(responses, `${method} ${path}`).toHaveProperty(status);
  expect(Object.keys(document.paths["/v1/controllers/{name}"].delete.responses)).toContain("204");
});

test("a route of the daemon that is not in the document answers the command line alone", () => {
  const described = new Set(Object.keys(document.paths));
  for (const path of [
    "/v1/keys",
    "/v1/keys/{id}/roll",
    "/v1/clients",
    "/v1/gateway-tokens",
    "/v1/audit",
    "/v1/auth/token",
  ])
    expect(described).toContain(path);
});

test("the pages are complete, whole and need nothing from elsewhere", async () => {
  for (const path of ["/docs", "/docs/errors", "/docs/errors/rate_limited"]) {
    const { status, headers, text } = await daemon.call("GET", path, { token: null, headers: { accept: "text/html" } });
    expect(status).toBe(200);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(text).not.toMatch(/<script|<link|src=|url\(/);
  }
  const { text: api } = await daemon.call("GET", "/docs", { token: null });
  for (const path of Object.keys(document.paths)) expect(api).toContain(path.replaceAll("'", "&#39;"));
  const { text: list } = await daemon.call("GET", "/docs/errors", { token: null });
  for (const code of Object.keys(errors)) expect(list).toContain(`id="${code}"`);
  expect((await daemon.call("GET", "/docs/errors/nothing", { token: null })).status).toBe(404);
});

test("a deprecated route says since when, and until when at least 24 months later", async () => {
  const app = fastify();
  useDeprecation(app);
  const deprecated = { since: "2026-01-01T00:00:00Z", sunset: "2028-01-01T00:00:00Z" };
  app.get("/old", { config: { deprecated } }, async () => ({}));
  const { headers } = await app.inject("/old");
  expect(headers).toMatchObject({ deprecation: "@1767225600", sunset: "Sat, 01 Jan 2028 00:00:00 GMT" });
  const early = { since: "2026-01-01T00:00:00Z", sunset: "2027-01-01T00:00:00Z" };
  const other = fastify();
  useDeprecation(other);
  expect(() => other.get("/early", { config: { deprecated: early } }, async () => ({}))).toThrow("24 months");
});
