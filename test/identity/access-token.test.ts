// Access tokens under attack: everything here is refused, and a token of ours right beside it is accepted.
import { createHmac, generateKeyPairSync, randomBytes, sign as signBytes } from "node:crypto";
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AUDIENCE, accessTokens } from "#daemon/identity/jwt/access-token.ts";
import { openSigningKeys, type StoredSigningKey } from "#daemon/identity/jwt/signing-keys.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import { HandClock, startDaemon, type TestDaemon } from "./daemon.ts";

let daemon: TestDaemon;
let client: { client_id: string; client_secret: string };
let good: string;
let ours: { kid: string; key: CryptoKey };
let other: { privateKey: CryptoKey; publicKey: CryptoKey };

beforeAll(async () => {
  daemon = await startDaemon();
  const made = await daemon.call("POST", "/v1/clients", {
    body: { scopes: ["keys:read"], environment: "live", tier: "enterprise" },
  });
  client = made.body;
  good = (await daemon.call("POST", "/v1/auth/token", { token: null, body: client })).body.access_token;
  ours = daemon.app.identity.signingKeys.current();
  other = await generateKeyPair("EdDSA", { crv: "Ed25519", extractable: true });
});
afterAll(() => daemon.close());

const use = (token: string) => daemon.call("GET", "/v1/keys", { token });
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const now = () => Math.floor(Date.now() / 1_000);

interface Claims {
  [name: string]: unknown;
}
const claims = (changes: Claims = {}): Claims => ({
  iss: daemon.url,
  aud: AUDIENCE,
  sub: client.client_id,
  client_id: client.client_id,
  scope: "keys:read",
  iat: now(),
  exp: now() + 900,
  jti: "jti",
  ...changes,
});
const header = (changes: Claims = {}): Claims => ({ alg: "EdDSA", typ: "at+jwt", kid: ours.kid, ...changes });
const without = (name: string): Claims => Object.fromEntries(Object.entries(claims()).filter(([key]) => key !== name));

// Signed with our own key, byte by byte: nothing that a library would refuse to make is left out.
async function signed(head: unknown, body: unknown, key: CryptoKey = ours.key): Promise<string> {
  const input = typeof body === "string" ? `${encode(head)}.${body}` : `${encode(head)}.${encode(body)}`;
  const signature = await crypto.subtle.sign("Ed25519", key, Buffer.from(input));
  return `${input}.${Buffer.from(signature).toString("base64url")}`;
}

const attacks: Readonly<Record<string, () => string | Promise<string>>> = {
  "alg none": () => new UnsecuredJWT(claims() as Record<string, string>).encode(),
  "alg none with our header": () => `${encode(header({ alg: "none" }))}.${encode(claims())}.`,
  "alg None": () => `${encode(header({ alg: "None" }))}.${encode(claims())}.`,
  "alg NONE with a signature": () => signed(header({ alg: "NONE" }), claims()),
  "alg nOnE": () => `${encode(header({ alg: "nOnE" }))}.${encode(claims())}.x`,
  "no alg": () => signed({ typ: "at+jwt", kid: ours.kid }, claims()),
  "alg as a list": () => signed(header({ alg: ["EdDSA"] }), claims()),
  "HS256 keyed with the public key": async () => {
    const jwks = (await daemon.call("GET", "/.well-known/jwks.json", { token: null })).body;
    const input = `${encode(header({ alg: "HS256" }))}.${encode(claims())}`;
    return `${input}.${createHmac("sha256", Buffer.from(jwks.keys[0].x, "base64url")).update(input).digest("base64url")}`;
  },
  "HS256 keyed with the JWK's text": async () => {
    const jwks = (await daemon.call("GET", "/.well-known/jwks.json", { token: null })).text;
    const input = `${encode(header({ alg: "HS256" }))}.${encode(claims())}`;
    return `${input}.${createHmac("sha256", jwks).update(input).digest("base64url")}`;
  },
  "HS256 keyed with nothing": () => {
    const input = `${encode(header({ alg: "HS256" }))}.${encode(claims())}`;
    return `${input}.${createHmac("sha256", "").update(input).digest("base64url")}`;
  },
  "RS256 of another key": () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const input = `${encode(header({ alg: "RS256" }))}.${encode(claims())}`;
    return `${input}.${signBytes("sha256", Buffer.from(input), privateKey).toString("base64url")}`;
  },
  "ES256 with a signature of zeros": () =>
    `${encode(header({ alg: "ES256" }))}.${encode(claims())}.${Buffer.alloc(64).toString("base64url")}`,
  "EdDSA with a signature of zeros": () =>
    `${encode(header())}.${encode(claims())}.${Buffer.alloc(64).toString("base64url")}`,
  "another key under our kid": () => signed(header(), claims(), other.privateKey),
  "another key under its own kid": () => signed(header({ kid: "other" }), claims(), other.privateKey),
  "an embedded jwk": async () => signed(header({ jwk: await exportJWK(other.publicKey) }), claims(), other.privateKey),
  "an embedded jwk, signed by us": async () => signed(header({ jwk: await exportJWK(other.publicKey) }), claims()),
  "a jku": () => signed(header({ jku: "https://evil.example/jwks.json" }), claims(), other.privateKey),
  "a jku, signed by us": () => signed(header({ jku: "https://evil.example/jwks.json" }), claims()),
  "an x5u": () => signed(header({ x5u: "https://evil.example/cert.pem" }), claims(), other.privateKey),
  "an x5c": () => signed(header({ x5c: ["MIIB"] }), claims()),
  "a kid with a path": () => signed(header({ kid: "../../../../dev/null" }), claims()),
  "a kid with SQL": () => signed(header({ kid: "' or 1=1 --" }), claims()),
  "a kid as an object": () => signed(header({ kid: { toString: "x" } }), claims()),
  "kid __proto__": () => signed(header({ kid: "__proto__" }), claims()),
  "no kid": () => signed({ alg: "EdDSA", typ: "at+jwt" }, claims()),
  "crit with an unknown extension": () => signed(header({ crit: ["exp"], exp: 1 }), claims()),
  "an empty crit": () => signed(header({ crit: [] }), claims()),
  "b64 false": () => signed(header({ b64: false, crit: ["b64"] }), claims()),
  "typ JWT": () => signed(header({ typ: "JWT" }), claims()),
  "no typ": () => signed({ alg: "EdDSA", kid: ours.kid }, claims()),
  "typ id token": () => signed(header({ typ: "id+jwt" }), claims()),
  "another issuer": () => signed(header(), claims({ iss: "https://evil.example" })),
  "the issuer with a slash": () => signed(header(), claims({ iss: `${daemon.url}/` })),
  "issuers as a list": () => signed(header(), claims({ iss: [daemon.url] })),
  "no issuer": () => signed(header(), without("iss")),
  "another audience": () => signed(header(), claims({ aud: "https://other.example" })),
  "no audience": () => signed(header(), without("aud")),
  "an empty audience": () => signed(header(), claims({ aud: [] })),
  expired: () => signed(header(), claims({ exp: now() - 1 })),
  "no expiry": () => signed(header(), without("exp")),
  "an expiry as a text": () => signed(header(), claims({ exp: String(now() + 900) })),
  "an expiry that is null": () => signed(header(), claims({ exp: null })),
  "not valid yet": () => signed(header(), claims({ nbf: now() + 600 })),
  "issued in the future": () => signed(header(), claims({ iat: now() + 600 })),
  "no issue time": () => signed(header(), without("iat")),
  "no subject": () => signed(header(), without("sub")),
  "another subject": () => signed(header(), claims({ sub: "client_other" })),
  "no client": () => signed(header(), without("client_id")),
  "a client that does not exist": () => signed(header(), claims({ sub: "client_none", client_id: "client_none" })),
  "a key's id as client": async () => {
    const { body } = await daemon.call("POST", "/v1/keys", { body: { scopes: ["keys:read"] } });
    return signed(header(), claims({ sub: body.id, client_id: body.id }));
  },
  "no scope": () => signed(header(), without("scope")),
  "scope as a list": () => signed(header(), claims({ scope: ["keys:read"] })),
  "no jti": () => signed(header(), without("jti")),
  "no payload": () => signed(header(), ""),
  "a payload that is a list": () => signed(header(), [claims()]),
  "a payload that is null": () => signed(header(), null),
  "a changed payload under the old signature": () => {
    const [head, , signature] = good.split(".");
    return `${head}.${encode(claims({ scope: "keys:read keys:write" }))}.${signature}`;
  },
  "no signature": () => `${good.split(".").slice(0, 2).join(".")}.`,
  "two parts": () => good.split(".").slice(0, 2).join("."),
  "four parts": () => `${good}.x`,
  "five parts (JWE)": () => `${good}.x.y`,
  "another spelling of the signature": () => {
    // 64 bytes are 86 characters, of which the last has four bits that mean nothing.
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const last = alphabet.indexOf(good.at(-1) ?? "");
    return good.slice(0, -1) + alphabet[last ^ 1];
  },
  "a padded signature": () => `${good}==`,
  "base64 instead of base64url": async () => {
    const [head, body, signature] = good.split(".");
    return `${head}.${body}.${Buffer.from(signature ?? "", "base64url").toString("base64")}`;
  },
  "a signature with S plus the group's order": () => {
    const [head, body, signature] = good.split(".");
    const bytes = Buffer.from(signature ?? "", "base64url");
    const order = (1n << 252n) + 27742317777372353535851937790883648493n;
    const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`) + order;
    const raised = Buffer.from(s.toString(16).padStart(64, "0").slice(-64), "hex").reverse();
    return `${head}.${body}.${Buffer.concat([bytes.subarray(0, 32), raised]).toString("base64url")}`;
  },
  "100 kB": () => signed(header(), claims({ pad: "x".repeat(9_000) })),
  "an identity token of another library": async () =>
    new SignJWT(claims() as Record<string, string>).setProtectedHeader({ alg: "EdDSA" }).sign(other.privateKey),
};

describe(`${Object.keys(attacks).length} attacks`, () => {
  test("there are at least 40, and the token that they vary is accepted", async () => {
    expect(Object.keys(attacks).length).toBeGreaterThanOrEqual(40);
    expect((await use(good)).status).toBe(200);
    expect((await use(await signed(header(), claims()))).status).toBe(200);
  });

  test.each(Object.entries(attacks))("%s", async (_name, make) => {
    const answer = await use(await make());
    expect(answer.status).toBe(401);
    expect(["invalid_key", "expired"]).toContain(answer.body.code);
    expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer/);
  });
});

test("a token that another daemon over the same database gave is good here", async () => {
  const iss = "http://10.0.0.2:4141";
  const token = await signed(header(), claims({ iss }));
  expect((await use(token)).status).toBe(401);
  const { setting } = daemon.app.storage.units;
  const keep = 50;
  await Promise.all(
    [iss, "http://10.0.0.3:4141"].map((value) => setting.append({ key: "identity.issuers", value, keep })),
  );
  expect((await use(token)).status).toBe(200);
  expect((await use(await signed(header(), claims({ iss: "http://10.0.0.3:4141" })))).status).toBe(200);
});

test("a token has its client's scopes at most, also when they are claimed", async () => {
  const token = await signed(header(), claims({ scope: "keys:read keys:write audit:read" }));
  expect((await use(token)).status).toBe(200);
  expect((await daemon.call("GET", "/v1/audit", { token })).status).toBe(403);
});

test("a rotation mid-flight: old tokens stay good, new ones have the new key, JWKS shows both", async () => {
  await daemon.app.identity.signingKeys.rotate();
  const fresh = (await daemon.call("POST", "/v1/auth/token", { token: null, body: client })).body.access_token;
  const kidOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()).kid;
  expect(kidOf(fresh)).not.toBe(kidOf(good));
  for (const token of [good, fresh]) expect((await use(token)).status).toBe(200);
  const jwks = (await daemon.call("GET", "/.well-known/jwks.json", { token: null })).body;
  expect(jwks.keys.map((key: { kid: string }) => key.kid).sort()).toEqual([kidOf(good), kidOf(fresh)].sort());
});

test("tokens are signed while the keys are read again for an unknown one", async () => {
  const clock = new HandClock();
  const rows: StoredSigningKey[] = [];
  const keys = await openSigningKeys({
    store: { list: async () => rows, add: async (key) => void rows.unshift(key) },
    sealer: createSealer(randomBytes(32), "signing-keys"),
    clock,
    maxTokenTtlS: () => 60,
  });
  clock.advance(2_000);
  const reading = keys.verifier("unknown");
  expect(keys.current().kid).toBe(rows[0]?.kid);
  expect(await reading).toBeUndefined();
});

test("a daemon signs with the key that another one over its database has made, and publishes it", async () => {
  const clock = new HandClock();
  let rows: StoredSigningKey[] = [];
  const open = () =>
    openSigningKeys({
      store: {
        list: async () => rows,
        async add(key, retires_at) {
          rows = [key, ...rows.map((row) => ({ ...row, retires_at: row.retires_at ?? retires_at }))];
        },
      },
      sealer: createSealer(Buffer.alloc(32), "signing-keys"),
      clock,
      maxTokenTtlS: () => 60,
    });
  const [first, second] = [await open(), await open()];
  await second.rotate();
  clock.advance(2_000);
  await accessTokens({ keys: first, clock, issuer: async () => "i", isIssuer: async () => true }).issue(
    "c",
    "live",
    [],
    60,
  );
  expect(first.current().kid).toBe(second.current().kid);
  expect(first.jwks().keys).toEqual(second.jwks().keys);
});

test("a token ends when magic.yaml says, to the second, also from the cache", async () => {
  const expiring = await signed(
    { ...header(), kid: daemon.app.identity.signingKeys.current().kid },
    claims({ exp: now() + 4 }),
    daemon.app.identity.signingKeys.current().key,
  );
  expect((await use(expiring)).status).toBe(200);
  await expect.poll(async () => (await use(expiring)).body.code, { timeout: 15_000, interval: 100 }).toBe("expired");
});
