import { createHmac, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { macBy } from "#daemon/identity/audit/mac.ts";

test.each([0, 1, 31, 32, 64])("is Node's own HMAC-SHA-256, whatever the text: a key of %i bytes", (length) => {
  const key = randomBytes(length);
  const mac = macBy(key);
  const texts = ["", "a", "é\0\u2028😀", "\ud800", "x".repeat(1024), "é".repeat(1024), "x".repeat(5000), "short again"];
  for (const text of [...texts, ...Array.from({ length: 200 }, (_, at) => "é".repeat(at))])
    expect(mac(text)).toBe(createHmac("sha256", key).update(text).digest("base64url"));
});

test("a key that is longer than a block is not taken", () => {
  expect(() => macBy(randomBytes(65))).toThrow("65 bytes");
});
