// Where a database's URL leads: what the egress guard checks is what the driver connects to, however the URL says it.
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { openSource } from "#daemon/integrations/connectors/open.ts";
import { databasePlace, readServerUrl, serverUrl } from "#daemon/integrations/engine/server-url.ts";
import { urlOf } from "#daemon/integrations/live/ends.ts";
import { listen } from "#test/listen.ts";
import { startDaemon } from "./daemon.ts";

test("a database's URL is read as its driver reads it", () => {
  const place = (url: string) => databasePlace(serverUrl(url), 5432);
  expect(place("postgres://u:p@db.example:6000/shop")).toEqual({ host: "db.example", port: 6000 });
  expect(place("postgres://u@/shop?host=10.0.0.1&port=99")).toEqual({ host: "10.0.0.1", port: 99 });
  expect(place("postgres://db.example/shop?host=10.0.0.1")).toEqual({ host: "10.0.0.1", port: 5432 });
  expect(place("postgres://%2Frun%2Fpostgresql/shop")).toEqual({ host: "/run/postgresql", port: 5432 });
  expect(place("mysql://u@/shop?socket=/run/mysqld.sock").host).toBe("/run/mysqld.sock");
  expect(place("postgres:///shop").host).toBe("localhost");
  expect(place("postgres://u@10.0.0.1/shop?socket=/run/mysqld.sock").host).toBe("10.0.0.1");
  expect(() => place("postgres://u@/shop?host=db.example&host=10.0.0.1")).toThrow(/host twice/);
});

test("a URL that its driver cannot use is told as that", async () => {
  for (const [url, said] of [
    ["postgres://u:p@h.example/d?sslrootcert=/nowhere", /nowhere/],
    ["mysql://u:p@h.example/d?sslmode=verify-full&sslrootcert=/nowhere", /nowhere/],
    ["mysql://u:p@h.example/d?sslmode=verifyfull", /"verifyfull" is no sslmode/],
    ["postgres://u:p@h.example/d?sslmode=verifyfull", /"verifyfull" is no sslmode/],
    ["mysql://u:p@h.example/d?port=abc", /port/],
    ["postgres://u:p@h.example/d?port=70000", /port/],
  ] as const) {
    const source = await openSource({ url, object: "x" });
    await expect(source.check(), url).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringMatching(said),
    });
  }
});

test.each(["off", "no", "none", "DISABLED", "false"])("ssl=%s is no TLS for MySQL", async (word) => {
  const source = await openSource({ url: `mysql://u:p@127.0.0.1:1/d?ssl=${word}`, object: "x" });
  await expect(source.check()).rejects.toMatchObject({ code: "unreachable" });
});

test("a host that is an address of IPv6 is put into brackets, one with its port is not", () => {
  const parts = { host: "db.example:5433", database: "d" };
  expect(urlOf({ provider: "mysql", config: parts, credentials: {} })).toBe("mysql://db.example:5433/d");
  const config = { host: "::1", port: 5433, database: "a b" };
  const made = urlOf({ provider: "postgres", config, credentials: { username: "u", password: "p@" } });
  expect(made).toBe("postgres://u:p%40@[::1]:5433/a%20b");
});

test("the user and password of a connection reach a server behind a socket too", () => {
  const credentials = { username: "u", password: "p" };
  const of = (provider: string, config: object) => urlOf({ provider, config: config as never, credentials }) ?? "";
  for (const [provider, config, host] of [
    ["postgres", { url: "postgres:///d?host=/run/pg" }, "/run/pg"],
    ["mysql", { url: "mysql:///d?socket=/run/my.sock" }, "/run/my.sock"],
    ["postgres", { host: "/run/pg", database: "d" }, "/run/pg"],
    ["mysql", { host: "/run/my.sock", database: "d" }, "/run/my.sock"],
  ] as const) {
    const url = serverUrl(of(provider, config));
    expect([url.username, url.password, url.pathname]).toEqual(["u", "p", "/d"]);
    expect(databasePlace(url, 1).host).toBe(host);
  }
});

test.each([
  "postgres://u:s3cret%zz@h/d",
  "mysql://u:s3cret%e0%a4@h/d",
  "postgres:h/d",
  "postgres://h:99999/s3cret",
  "http://",
])("%s cannot be read, and the error does not repeat it", (url) => {
  expect(readServerUrl(url)).toBeNull();
  expect(() => serverUrl(url)).toThrow(/percent-encoded/);
  expect(() => serverUrl(url)).not.toThrow(/s3cret/);
});

test("no form of a live connection's URL reaches a private address, or has another file read", async () => {
  let reached = 0;
  const canary = createServer((socket) => {
    reached++;
    socket.destroy();
  });
  const { port } = await listen(canary);
  try {
    const daemon = await startDaemon();
    const scopes = ["connections:read", "connections:write"];
    const made = await daemon.call("POST", "/v1/keys", { name: "k", scopes, environment: "live", tier: "enterprise" });
    const asked = { live: true, token: made.body.secret };
    const outcome = async (provider: string, url: string) => {
      const connection = await daemon.call("POST", "/v1/connections", { provider, config: { url } }, asked);
      if (connection.status !== 201) return connection.body.detail;
      const checked = await daemon.call("POST", `/v1/connections/${connection.body.id}/check`, {}, asked);
      return checked.body.health.message;
    };
    for (const [provider, url] of [
      ["postgres", `postgres://u:p@127.0.0.1:${port}/d`],
      ["postgres", `postgres://u@/d?host=127.0.0.1&port=${port}`],
      ["postgres", `postgres://example.com/d?host=127.0.0.1&port=${port}`],
      ["postgres", `postgres://u@/d?port=${port}`],
      ["postgres", `postgresql://0x7f000001:${port}/d`],
      ["mysql", `mysql://u:p@localhost:${port}/d`],
      ["mysql", `mysql://u@/d?host=127.0.0.1&port=${port}`],
      ["postgres", "postgres://u:p@example.com/d?sslmode=verify-full&sslrootcert=/etc/hostname"],
      ["postgres", "postgres://u:p@example.com/d?sslrootcert=data/ca.pem&sslrootcert=/etc/hostname"],
    ] as const)
      expect([url, await outcome(provider, url)]).toEqual([
        url,
        expect.stringMatching(/is not a public address|is not below the project/),
      ]);
    const twice = `postgres://u@/d?host=example.com&host=127.0.0.1&port=${port}`;
    expect(await outcome("postgres", twice)).toMatch(/host twice/);
    expect(reached).toBe(0);
  } finally {
    canary.close();
  }
});
