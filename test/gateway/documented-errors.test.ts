// Each vendor's documented errors, over real HTTP, in OpenAI's form.
import { describe, expect, test } from "vitest";
import { failure } from "#daemon/gateway/providers/failure.ts";
import { createProviders } from "#daemon/gateway/providers/registry.ts";
import { type Kind, models } from "./documented-cases.ts";
import { frame } from "./event-stream.ts";
import { agent, callOf, optionsOf, targetOf, upstreamOfFile } from "./upstream.ts";

const upstream = upstreamOfFile();
const providers = createProviders(agent);

describe("errors", () => {
  const google = (code: number, status: string, details: object[] = []) => ({
    error: { code, message: "m", status, details },
  });
  const depleted = {
    error: { code: 402, message: "Your prepayment credits are depleted.", status: "RESOURCE_EXHAUSTED" },
  };
  const overCap = {
    error: { code: 429, message: "Your project has exceeded its monthly spending cap.", status: "RESOURCE_EXHAUSTED" },
  };
  const anthropic = (type: string, message = "m", details?: object) => ({
    type: "error",
    error: { type, message, details },
    request_id: "r",
  });
  const spentTeam = {
    code: "The caller does not have permission to execute the specified operation",
    error:
      "Your team 1f-2e has either used all available credits or reached its monthly spending limit. To continue, m",
  };
  const recharge =
    "Your account org-1 <ak-2> is suspended due to insufficient balance, please recharge your account or check your payment.";
  const moonshot = { error: { message: recharge, type: "exceeded_current_quota_error" } };
  const byRouter = {
    error: { message: "Provider returned error", code: 429, metadata: { raw: JSON.stringify(moonshot) } },
  };
  const zhipu = { error: { code: "1113", message: "余额不足或无可用资源包,请充值。m" } };
  const noPackage = "Insufficient balance or no resource package. Please recharge. m";
  const overLimit = { error_code: "enforced_spend_limit_reached" };
  const openai = (type: string, code: string) => ({ error: { message: "m", type, code, param: null } });
  const spent = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing for more.";
  const capped = "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.";
  const retry = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.4s" }];
  const key = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }];

  test.each([
    ["anthropic", 400, anthropic("invalid_request_error"), {}, { status: 400, type: "invalid_request_error" }],
    ["anthropic", 400, anthropic("invalid_request_error", spent), {}, { status: 429, kind: "quota" }],
    ["anthropic", 400, anthropic("invalid_request_error", capped), {}, { status: 429, kind: "quota" }],
    ["anthropic", 401, anthropic("authentication_error"), {}, { status: 401 }],
    ["anthropic", 403, anthropic("permission_error"), {}, { status: 403 }],
    ["anthropic", 404, anthropic("not_found_error"), {}, { status: 404 }],
    ["anthropic", 413, anthropic("request_too_large"), {}, { status: 413, type: "invalid_request_error" }],
    [
      "anthropic",
      429,
      anthropic("rate_limit_error"),
      { "retry-after": "12" },
      { status: 429, kind: "rate_limit", retryAfterMs: 12_000 },
    ],
    ["anthropic", 429, anthropic("rate_limit_error", "m", overLimit), {}, { status: 429, kind: "quota" }],
    ["anthropic", 402, anthropic("billing_error"), {}, { status: 429, kind: "quota" }],
    ["anthropic", 500, anthropic("api_error"), {}, { status: 502, kind: "internal" }],
    ["openai", 429, openai("requests", "rate_limit_exceeded"), {}, { status: 429, kind: "rate_limit" }],
    ["openai", 429, openai("insufficient_quota", "organization_usage_limit_exceeded"), {}, { kind: "quota" }],
    ["openai", 429, openai("billing_error", "credit_balance_exhausted"), {}, { status: 429, kind: "quota" }],
    ["openai", 429, openai("billing_error", "project_spend_limit_exceeded"), {}, { status: 429, kind: "quota" }],
    ["anthropic", 529, anthropic("overloaded_error"), {}, { status: 503, kind: "overloaded" }],
    ["google", 400, google(400, "INVALID_ARGUMENT"), {}, { status: 400, type: "invalid_request_error" }],
    ["google", 400, [google(400, "INVALID_ARGUMENT", key)], {}, { status: 401, kind: "auth" }],
    ["google", 403, google(403, "PERMISSION_DENIED"), {}, { status: 403 }],
    ["google", 404, google(404, "NOT_FOUND"), {}, { status: 404 }],
    ["google", 429, google(429, "RESOURCE_EXHAUSTED", retry), {}, { status: 429, retryAfterMs: 34_400 }],
    ["openai", 429, [google(429, "RESOURCE_EXHAUSTED", retry)], {}, { status: 429, retryAfterMs: 34_400 }],
    ["google", 402, depleted, {}, { status: 429, kind: "quota" }],
    ["google", 200, depleted, {}, { status: 429, kind: "quota" }],
    ["google", 429, overCap, {}, { status: 429, kind: "quota" }],
    ["openai", 429, [overCap], {}, { status: 429, kind: "quota" }],
    ["openai", 429, spentTeam, {}, { status: 429, kind: "quota" }],
    ["openai", 403, spentTeam, {}, { status: 429, kind: "quota" }],
    ["openai", 429, moonshot, {}, { status: 429, kind: "quota" }],
    ["openai", 429, byRouter, {}, { status: 429, kind: "quota" }],
    ["openai", 429, zhipu, {}, { status: 429, kind: "quota" }],
    ["anthropic", 429, anthropic("1113", noPackage), {}, { status: 429, kind: "quota" }],
    ["openai", 400, openai("budget_exceeded", "400"), {}, { status: 429, kind: "quota" }],
    ["openai", 400, openai("Arrearage", "Arrearage"), {}, { status: 429, kind: "quota" }],
    ["openai", 403, openai("Forbidden", "AccountOverdueError"), {}, { status: 429, kind: "quota" }],
    ["openai", 400, openai("invalid_request_error", "11134"), {}, { status: 400, kind: "invalid" }],
    ["openai", 403, openai("permission_error", "x"), {}, { status: 403, kind: "permission" }],
    ["google", 500, google(500, "INTERNAL"), {}, { status: 502 }],
    ["google", 503, google(503, "UNAVAILABLE"), {}, { status: 503 }],
    ["google", 504, google(504, "DEADLINE_EXCEEDED"), {}, { status: 504 }],
    ["google", 200, google(429, "RESOURCE_EXHAUSTED", retry), {}, { status: 429, retryAfterMs: 34_400 }],
    ["bedrock", 400, { message: "m" }, { "x-amzn-errortype": "ValidationException:http://x/" }, { status: 400 }],
    ["bedrock", 403, { message: "m" }, { "x-amzn-errortype": "AccessDeniedException" }, { status: 403 }],
    ["bedrock", 404, { message: "m" }, { "x-amzn-errortype": "ResourceNotFoundException" }, { status: 404 }],
    ["bedrock", 424, { message: "m" }, { "x-amzn-errortype": "ModelErrorException" }, { status: 502 }],
    [
      "bedrock",
      429,
      { message: "m" },
      { "x-amzn-errortype": "ThrottlingException" },
      { status: 429, kind: "rate_limit" },
    ],
    [
      "bedrock",
      429,
      { message: "m" },
      { "x-amzn-errortype": "ModelNotReadyException" },
      { status: 503, kind: "overloaded" },
    ],
    [
      "bedrock",
      408,
      { message: "m" },
      { "x-amzn-errortype": "ModelTimeoutException" },
      { status: 504, kind: "timeout" },
    ],
    ["bedrock", 200, { message: "m" }, {}, { status: 502, kind: "protocol" }],
  ] as const)("%s %i %j", async (kind, status, body, headers, expected) => {
    upstream.answer = (response) =>
      void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
    const request = { messages: [{ role: "user", content: "x" }] };
    const model = kind === "openai" ? "m" : models[kind];
    const outcome = await providers[kind].chat(callOf(request), targetOf(kind, upstream, model), optionsOf());
    expect(outcome).toMatchObject({ kind: "failure", failure: { message: expect.stringMatching(/m/), ...expected } });
  });

  test.each([
    ["anthropic", anthropic("invalid_request_error", "prompt is too long: 203456 tokens > 200000 maximum")],
    [
      "anthropic",
      anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
    ],
    [
      "google",
      {
        error: {
          code: 400,
          status: "INVALID_ARGUMENT",
          message: "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        },
      },
    ],
    ["bedrock", { message: "Input is too long for requested model." }],
    ["openai", { object: "error", code: 400, message: "This model's maximum context length is 4096 tokens." }],
    ["openai", { error: { message: "The total length of all messages is too long.", type: "too_many", code: 400 } }],
    [
      "openai",
      { error: { message: "Provider returned error", code: 400, metadata: { raw: "The prompt is too long." } } },
    ],
    [
      "openai",
      {
        error: {
          message: "Provider returned error",
          code: 400,
          metadata: { raw: JSON.stringify(anthropic("invalid_request_error", "prompt is too long")) },
        },
      },
    ],
  ] as const)("a prompt that does not fit has OpenAI's code for it: %s %j", async (kind, body) => {
    upstream.answer = (response) =>
      void response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify(body));
    const request = { messages: [{ role: "user", content: "x" }] };
    const outcome = await providers[kind].chat(
      callOf(request),
      targetOf(kind, upstream, "claude-haiku-4-5"),
      optionsOf(),
    );
    expect(outcome).toMatchObject({
      failure: { status: 400, type: "invalid_request_error", code: "context_length_exceeded" },
    });
  });

  test("a secret that an error quotes where its message is cut is told no better in part", () => {
    const secret = "canary-0123456789";
    const { message } = failure("server", `${"x".repeat(1990)}${secret} and more`, { secrets: [secret] });
    expect(message).toHaveLength(2000);
    expect(message).not.toContain("canary");
  });

  test("an error before the first content is an attempt that failed, whatever the status line said", async () => {
    const firsts: Record<Kind, Buffer> = {
      anthropic: Buffer.from(
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n',
      ),
      google: Buffer.from('data: {"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}\n\n'),
      bedrock: frame("serviceUnavailableException", '{"message":"m"}', "exception"),
    };
    for (const kind of ["anthropic", "google", "bedrock"] as const) {
      upstream.answer = (response) =>
        void response.writeHead(200, { "content-type": "text/event-stream" }).end(firsts[kind]);
      const request = { messages: [{ role: "user", content: "x" }], stream: true };
      const outcome = await providers[kind].chat(callOf(request), targetOf(kind, upstream, models[kind]), optionsOf());
      expect(outcome).toMatchObject({ kind: "failure", failure: { kind: "overloaded", status: 503 }, usage: null });
    }
  });
});
