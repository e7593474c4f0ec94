// What a list of keys, clients or tokens says of each.
import { expect, test } from "vitest";
import type { CredentialDocument } from "#client/credentials.ts";
import { stateOf } from "#commands/credential-verbs.ts";

const secret = { id: "sec_1", created_at: "2026-01-01T00:00:00.000Z", last_used_at: null, expires_at: null };
const end = "2026-01-02T00:00:00.000Z";

test.each([
  ["active", {}],
  ["rolling", { secrets: [secret, { ...secret, id: "sec_2", expires_at: end }] }],
  ["active", { expires_at: "2026-01-02T00:00:00.001Z" }],
  ["expired", { expires_at: end, secrets: [secret, secret] }],
  ["revoked", { expires_at: end, revoked_at: "2026-01-01T12:00:00.000Z" }],
])("a credential is %s by what is said of it", (state, more) => {
  const document = { secrets: [secret], expires_at: null, revoked_at: null, ...more };
  expect(stateOf(document as unknown as CredentialDocument, Date.parse(end))).toBe(state);
});
