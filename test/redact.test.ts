// What is written down of a text that may quote secrets.
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { striker } from "#daemon/controllers/broker/redaction.ts";
import { createLogger } from "#daemon/telemetry/log.ts";
import { cleanWithin, redactText, secretsIn } from "#shared/redact.ts";
import { within } from "./patience.ts";

test("a secret is hidden as an address, any JSON and any page writes it, a key in PEM too", () => {
  const { privateKey } = generateKeyPairSync("ed25519");
  const short = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8c/+\n";
  const long = `-----BEGIN PRIVATE KEY-----\n${line.repeat(48)}-----END PRIVATE KEY-----\n`;
  for (const secret of [short, long, 'caf\u00e9 "x"/\\\t\u{1f511}', "a&b<c>+d="]) {
    const json = JSON.stringify(secret);
    const ascii = json.replace(/[^\w\s"\\:-]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
    for (const written of [
      ...[secret, json, ascii, json.replaceAll("/", "\\/"), JSON.stringify({ key: secret.trim() })],
      ...[encodeURIComponent(secret), new URLSearchParams({ secret }).toString()],
      encodeURIComponent(encodeURIComponent(secret)),
      ...[entities(secret, "dec"), entities(secret, "hex"), entities(entities(secret, "dec"), "hex"), page(secret)],
    ])
      expect(redactText(`refused: ${written}.`, [secret])).toMatch(/^refused: .{0,8}\[redacted\].{0,6}$/s);
    expect(redactText(`50% of ${json}`, [secret])).not.toContain(json.slice(3, -5));
  }
});

test("a secret every letter of which is spelled out is hidden, and what is not secret stays as it is", () => {
  const spelled = (text: string, spell: (code: number) => string) =>
    Array.from(text, (character) => spell(character.charCodeAt(0))).join("");
  const hex = (code: number, digits = 2) => code.toString(16).padStart(digits, "0");
  for (const secret of ["canary0123456789", "a&b<c>+d=e/f"]) {
    for (const spell of [
      (code: number) => `%${hex(code)}`,
      (code: number) => `%25${hex(code).toUpperCase()}`,
      (code: number) => `\\u${hex(code, 4)}`,
      (code: number) => `&#${code};`,
      (code: number) => `&amp;#x${hex(code)};`,
    ]) {
      expect(redactText(`key ${spelled(secret, spell)}!`, [secret])).toBe("key [redacted]!");
      expect(redactText(spelled(`no${secret}no`, spell), [secret])).toMatch(/^.{0,36}\[redacted\].{0,36}$/);
      const other = spelled(secret.toUpperCase().replace("A", "x"), spell);
      expect(redactText(other, [secret])).toBe(other);
    }
  }
  expect(redactText("&#9999999;&#9999999;&#9999999;&#9999999;&#9999999;&#9999999;", ["canary0123456789"])).toContain(
    "&#",
  );
});

/** As templates do: Go's numbers some, PHP's all. */
function entities(text: string, base: "dec" | "hex"): string {
  const number = (character: string) => character.codePointAt(0) ?? 0;
  return text.replace(/[^\w\s;#.-]/gu, (one) =>
    base === "dec" ? `&#${number(one)};` : one === "&" ? "&amp;" : `&#x${number(one).toString(16).toUpperCase()};`,
  );
}

function page(text: string): string {
  const names: Record<string, string> = { "&": "amp", "<": "lt", ">": "gt", '"': "quot", "/": "sol", "+": "plus" };
  return text.replace(/[&<>"/+]/g, (one) => `&${names[one]};`);
}

test("a secret of which another one is the beginning is hidden whole, and one line stays one object with its members", () => {
  expect(redactText("gt_01m83g3bs0qty0mvywqjgf1kyr, gt_test_01m83g3bs0qty0mvywqjgf1kyr_x")).toBe(
    "gt_01m83g3bs0qty0mvywqjgf1kyr, [redacted]",
  );
  expect(redactText("a secret-of-mine-9f8a", ["secret-of-mine", "secret-of-mine-9f8a"])).toBe("a [redacted]");
  const lines: string[] = [];
  const log = createLogger({ sinks: [({ text }) => lines.push(text)], secrets: () => ["123456"] });
  log.info("told", {
    n: 1234567,
    at: ["http://127.0.0.1:9000"],
    to: "somebody@example.com",
    was: "postgres://u:pw@h/",
    quoted: 'postgres://u:p"w@h/',
  });
  expect(JSON.parse(lines[0] as string)).toMatchObject({
    ...{
      n: "[redacted]7",
      at: ["http://127.0.0.1:9000"],
      to: "somebody@example.com",
      was: "postgres://u:[redacted]@h/",
      quoted: "postgres://u:[redacted]@h/",
    },
  });
  for (const before of [3_990, 3_992]) {
    log.info("long", { text: `${"x".repeat(before)}${"123456".repeat(100)}${"x".repeat(70_000)}` });
    expect(JSON.parse(lines.pop() as string)).toMatchObject({ head: expect.not.stringMatching(/\d$/) });
  }
  const keys = ["a", "b"].map((letter) => letter.repeat(3_300));
  const keyed = createLogger({ sinks: [({ text }) => lines.push(text)], secrets: () => keys });
  keyed.info("long", { text: `${"x".repeat(2_000)}${keys.join(" ")}${"x".repeat(70_000)}` });
  expect(JSON.parse(lines.pop() as string)).toMatchObject({ head: expect.not.stringMatching(/aaa|bbb/) });
  // However deep a value lies: a line is written, or its writer would end with an error of the log's.
  const deep = JSON.parse(`${"[".repeat(20_000)}1234567${"]".repeat(20_000)}`);
  log.info("nested", { deep, exact: "1", k123456: '"123456"' });
  expect(lines[1]).toContain('["[redacted]7"]');
  expect(lines[1]).toContain('"exact":"1","k[redacted]":"\\"[redacted]\\""');
});

test("a line of nothing but texts and numbers hides what any other one does", () => {
  const told = (fields: Record<string, unknown>, ...secrets: string[]) => {
    const lines: string[] = [];
    createLogger({ sinks: [({ text }) => lines.push(text)], secrets: () => secrets }).info("told", fields);
    return lines[0] as string;
  };
  const key = 'k"e\ny-\u00e9';
  const written = [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1), "sk-0123456789abcdef"];
  for (const of of written)
    for (const more of [{}, { deep: {} }]) expect(told({ of, ...more }, key)).toMatch(/"of":"\[redacted\]"/);
  expect(told({ of: 1.5, n: 1234567 }, "123456")).toContain('"of":1.5,"n":"[redacted]7"');
  expect(told({ of: 1.5, n: 1234567 }, "other-123456")).toContain('"of":1.5,"n":1234567');
  expect(told({ of: "\u009b31m\u2028", n: 1 })).toContain('"of":"\\u009b31m\\u2028","n":1');
  expect(told({ of: "x".repeat(70_000) })).toContain('"truncated_from":70');
});

test("words of a configuration that say how it authenticates or what its key is are no secrets", () => {
  const config = {
    credentials: { auth_type: "oauth2.0", api_key: "k-123456", pat: "p-123456", keys: ["x-123456"] },
    ...{ primary_key: "customer_id", author: "somebody", region: "eu-west" },
  };
  expect(secretsIn(config).filter((form) => form.endsWith("-123456"))).toEqual(["k-123456", "p-123456", "x-123456"]);
});

test("a secret of a configuration is hidden in base64, wherever it stands in what was encoded, and in hex of either case", () => {
  const secret = "p-123456>?>?9f8a";
  const secrets = secretsIn({ password: secret });
  for (const user of ["", "a:", "ab:", "abc:"])
    for (const encoding of ["base64", "base64url", "hex"] as const) {
      const written = Buffer.from(`${user}${secret}~`).toString(encoding);
      for (const form of [written, encodeURIComponent(written), written.replaceAll("/", "\\/")])
        expect(redactText(`refused: Basic ${form}`, secrets)).toMatch(/^refused: Basic \w{0,8}\[redacted\]\S{0,8}$/);
    }
  expect(redactText(Buffer.from(secret).toString("hex").toUpperCase(), secrets)).toBe("[redacted]");
});

test("a line of many texts is searched for a secret without making its pattern for each", () => {
  const secret = `-----BEGIN PRIVATE KEY-----\n${randomBytes(1_200).toString("base64")}\n-----END PRIVATE KEY-----\n`;
  const began = performance.now();
  cleanWithin(Array(20_000).fill("%"), striker([secret]));
  cleanWithin(Array(100).fill("%".repeat(2_000)), striker([secret]));
  expect(performance.now() - began).toBeLessThan(within(500));
});

test("a JWT is hidden, and a line in which one seems to begin everywhere is read as quickly as another", () => {
  const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF-_123";
  expect(redactText(`token-${jwt}, "${jwt}", -eyJ.${jwt}`)).toBe('token-[redacted], "[redacted]", -eyJ.[redacted]');
  const began = performance.now();
  expect(redactText(`${"-eyJ".repeat(15_000)} ${jwt}`)).toMatch(/-eyJ \[redacted\]$/);
  expect(performance.now() - began).toBeLessThan(within(500));
});

test.each(["ab/", "ab+", "ab\\"])("what nearly is a secret of many %j is looked through at once", (part) => {
  const secret = `${part.repeat(40)}end`;
  const began = performance.now();
  redactText(`${secret.slice(0, -1)}x% and so on`, [secret]);
  expect(performance.now() - began).toBeLessThan(within(1_000));
});
