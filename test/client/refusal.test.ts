// What a command says of an answer that is a refusal.
import { expect, test } from "vitest";
import { refusal } from "#client/refusal.ts";

function refused(code: string, headers: Record<string, string> = {}) {
  const body = JSON.stringify({ error: { message: "slow down", type: "rate_limit_error", param: null, code } });
  const { message, extra } = refusal({ status: 429, headers: new Headers(headers) }, body);
  return [message, extra["next"]];
}

test("who is to wait is told how long, not the name of a header", () => {
  expect(refused("rate_limit_exceeded", { "retry-after": "5" })).toEqual(["slow down", "Try again in 5 s."]);
  expect(refused("rate_limit_exceeded")).toEqual(["slow down", "Try again a little later."]);
  expect(refused("insufficient_quota")).toEqual(["slow down", undefined]);
});
