// Server-side request forgery: every way we know of naming a private address, tried against a canary on loopback.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Agent, Agent as UnguardedAgent } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createEgress } from "#daemon/egress/egress.ts";

let hits = 0;
let port = 0;
const servers: Server[] = [];
let redirectTo = "";
beforeAll(async () => {
  const canary = createServer((request, response) => {
    if (request.url === "/redirect") response.writeHead(302, { location: redirectTo }).end();
    else {
      hits++;
      response.end("canary");
    }
  });
  await new Promise<void>((resolve) => canary.listen(0, "0.0.0.0", resolve));
  port = (canary.address() as AddressInfo).port;
  servers.push(canary);
  const six = createServer((_, response) => {
    hits++;
    response.end("canary");
  });
  await new Promise<void>((resolve) => {
    six.once("error", () => resolve());
    six.listen(port, "::1", resolve);
  });
  servers.push(six);
});
afterAll(() => {
  for (const server of servers) server.close();
});
beforeEach(() => {
  hits = 0;
});

// Hosts as a URL would carry them.
const loopback = [
  "127.0.0.1",
  "127.1",
  "127.0.1",
  "127.0.0.1.",
  "127.255.255.254",
  "2130706433",
  "0x7f000001",
  "0x7f.1",
  "0x7f.0.0.1",
  "0x7F.0x0.0x0.0x1",
  "0177.0.0.1",
  "0177.1",
  "017700000001",
  "00000177.0.0.1",
  "0x7f.0.1",
  "127.0.0.0x1",
  "127.0x1",
  "0177.0x0.0.01",
  "0",
  "0.0.0.0",
  "0x0",
  "00",
  "0.0",
  "0.1.2.3",
  "localhost",
  "LOCALHOST",
  "localhost.",
  "LocalHost.",
  "１２７.０.０.１",
  "127。0。0。1",
  "127．0．0．1",
  "①②⑦.⓪.⓪.①",
  "ｌｏｃａｌｈｏｓｔ",
  "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
  "%31%32%37.0.0.1",
  "127.0.0.1%2e",
  "%6c%6f%63alhost",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[0000::0001]",
  "[::]",
  "[0::0]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[0:0:0:0:0:ffff:127.0.0.1]",
  "[::FFFF:7F00:0001]",
  "[::127.0.0.1]",
  "[::7f00:1]",
  "[::ffff:0:127.0.0.1]",
  "[64:ff9b::127.0.0.1]",
  "[64:ff9b::7f00:1]",
  "[64:ff9b:1::7f00:1]",
  "[2002:7f00:1::]",
  "[2002:7f00:0001::1]",
  "[2001:0:7f00:1::]",
  "[2001::7f00:1]",
];
const privates = [
  "10.0.0.1",
  "10.255.255.255",
  "012.0.0.1",
  "0xa.0.0.1",
  "0x0a000001",
  "167772161",
  "172.16.0.1",
  "172.31.255.254",
  "172.1048577",
  "192.168.0.1",
  "192.168.1",
  "0xc0a80001",
  "3232235521",
  "0300.0250.0.1",
  "100.64.0.1",
  "100.127.255.254",
  "198.18.0.1",
  "198.19.255.255",
  "169.254.169.254",
  "169.254.43518",
  "0xa9fea9fe",
  "2852039166",
  "0251.0376.0251.0376",
  "169.254.0.1",
  "169.254.170.2",
  "192.0.0.1",
  "192.0.0.192",
  "192.0.2.1",
  "198.51.100.7",
  "203.0.113.9",
  "192.88.99.1",
  "224.0.0.1",
  "239.255.255.250",
  "240.0.0.1",
  "255.255.255.255",
  "4294967295",
  "0xffffffff",
  "[fc00::1]",
  "[fd00::1]",
  "[fd00:ec2::254]",
  "[fdff:ffff::1]",
  "[fe80::1]",
  "[febf::1]",
  "[fec0::1]",
  "[feff::1]",
  "[ff02::1]",
  "[ff05::2]",
  "[100::1]",
  "[2001:db8::1]",
  "[3fff::1]",
  "[2001:10::1]",
  "[2001:20::1]",
  "[2001:2::1]",
  "[::ffff:10.0.0.1]",
  "[::ffff:a00:1]",
  "[::ffff:192.168.0.1]",
  "[::ffff:169.254.169.254]",
  "[::ffff:a9fe:a9fe]",
  "[::10.0.0.1]",
  "[::a9fe:a9fe]",
  "[::ffff:0:10.0.0.1]",
  "[64:ff9b::10.0.0.1]",
  "[64:ff9b::169.254.169.254]",
  "[64:ff9b::a9fe:a9fe]",
  "[64:ff9b:1::a9fe:a9fe]",
  "[2002:a00:1::]",
  "[2002:c0a8:1::]",
  "[2002:a9fe:a9fe::]",
  "[2001:0:a9fe:a9fe::]",
  "[2600::5efe:127.0.0.1]",
  "[2600::200:5efe:10.0.0.1]",
  "[5f00::1]",
  "[4000::1]",
  "[0:0:0:0:0:0:0:0]",
  "[::2]",
];
const schemes = [
  "file:///etc/passwd",
  "file://localhost/etc/passwd",
  "FILE:///etc/passwd",
  "ftp://127.0.0.1/",
  "gopher://127.0.0.1:70/_x",
  "dict://127.0.0.1:11211/",
  "ldap://127.0.0.1/",
  "ws://127.0.0.1/",
  "wss://127.0.0.1/",
  "data:text/plain,x",
  "javascript:1",
  "blob:http://127.0.0.1/x",
  "jar:http://127.0.0.1!/",
  "netdoc:///etc/passwd",
  "unix:/run/x.sock",
  "http+unix://%2Frun%2Fx.sock/",
  "sftp://127.0.0.1/",
  "tftp://127.0.0.1/",
  "about:blank",
  "//127.0.0.1/",
  "127.0.0.1",
  "http://",
  "http://[",
  "http://[::1",
  "",
];
const users = ["example.com@", "example.com:80@", "example.com%2f@", "a:b@", "example.com%00@", "127.0.0.1:80@"];

describe("every form of a private address is refused before a byte is sent", () => {
  const variants = (): string[] => [
    ...loopback.map((host) => `http://${host}:${port}/`),
    ...privates.map((host) => `http://${host}/`),
    ...privates.slice(0, 6).map((host) => `https://${host}/`),
    ...schemes,
    ...users.map((user) => `http://${user}127.0.0.1:${port}/`),
    `http:\\\\127.0.0.1:${port}\\`,
    `http:127.0.0.1:${port}/`,
    `http:///127.0.0.1:${port}/`,
    `http://\t127.0.0.1:${port}/`,
    ` http://127.0.0.1:${port}/`,
    `http://127.0.0.1:${port}#@example.com/`,
    `http://127.0.0.1:${port}?@example.com/`,
    `http://127.0.0.1:${port}\\@example.com/`,
    `hTTp://127.0.0.1:${port}/`,
    `http://12\n7.0.0.1:${port}/`,
    `http://127.0.0.1:0${port}/`,
  ];

  test("at least 150 variants, 0 reach the canary", async () => {
    const egress = createEgress();
    const through: string[] = [];
    for (const url of variants()) {
      const outcome = await egress.request(url, { timeoutMs: 3000 }).then(
        () => "answered",
        (error: { code?: string }) => error.code,
      );
      // A host that is no host at all may fail to resolve instead.
      if (outcome !== "egress_blocked" && !(outcome === "upstream_error" && /%|[^\x20-\x7e]/.test(url)))
        through.push(`${JSON.stringify(url)}: ${outcome}`);
    }
    await egress.close();
    expect(variants().length).toBeGreaterThanOrEqual(150);
    expect(through).toEqual([]);
    expect(hits).toBe(0);
  });

  test("control: without the guard dozens of them do reach it", async () => {
    const agent = new UnguardedAgent() as Agent;
    await Promise.all(
      loopback.map(async (host) => {
        const url = URL.parse(`http://${host}:${port}/`);
        if (url === null) return;
        const signal = AbortSignal.timeout(4000);
        const answer = await agent
          .request({ origin: url.origin, path: "/", method: "GET", signal })
          .catch(() => undefined);
        await answer?.body.dump();
      }),
    );
    await agent.destroy();
    expect(hits).toBeGreaterThanOrEqual(25);
  });
});

describe("names", () => {
  const refused = async (resolver: (name: string) => Promise<string[]>, url = `http://rebind.example:${port}/`) => {
    const egress = createEgress({ resolver });
    await expect(egress.request(url, { timeoutMs: 2000 })).rejects.toMatchObject({ code: "egress_blocked" });
    await egress.close();
    expect(hits).toBe(0);
  };

  test("a name that resolves to a private address is refused", async () => {
    for (const address of [
      "127.0.0.1",
      "10.1.2.3",
      "169.254.169.254",
      "::1",
      "::ffff:127.0.0.1",
      "fe80::1%lo",
      "not an address",
    ])
      await refused(async () => [address]);
  });

  test("one private address among public ones is enough", () => refused(async () => ["93.184.216.34", "127.0.0.1"]));

  test("a name is resolved once for a connection, and the connection goes to what was checked", async () => {
    let asked = 0;
    const egress = createEgress({
      // Rebinding: public when it is checked, private a moment later.
      resolver: async () => (asked++ === 0 ? ["93.184.216.34"] : ["127.0.0.1"]),
      connectTimeoutMs: 300,
    });
    await expect(egress.request(`http://rebind.example:${port}/`, { timeoutMs: 700 })).rejects.toMatchObject({
      code: expect.stringMatching(/^upstream_/),
    });
    expect(asked).toBe(1);
    await expect(egress.request(`http://rebind.example:${port}/`, { timeoutMs: 700 })).rejects.toMatchObject({
      code: "egress_blocked",
    });
    await egress.close();
    expect(hits).toBe(0);
  });
});

describe("redirects and allowances", () => {
  test("each hop is checked: an allowed address may not lead to another private one", async () => {
    const egress = createEgress({ allowPrivate: () => [`127.0.0.1:${port}`] });
    for (const target of [
      `http://127.0.0.2:${port}/`,
      `http://[::1]:${port}/`,
      "http://169.254.169.254/",
      "file:///etc/passwd",
      "http://2130706434/",
    ]) {
      redirectTo = target;
      await expect(egress.request(`http://127.0.0.1:${port}/redirect`, { redirects: 5 })).rejects.toMatchObject({
        code: "egress_blocked",
      });
    }
    expect(hits).toBe(0);
    const answer = await egress.request(`http://127.0.0.1:${port}/redirect`);
    expect(answer.status).toBe(302);
    redirectTo = "/";
    expect(String((await egress.request(`http://localhost:${port}/redirect`, { redirects: 1 })).body)).toBe("canary");
    redirectTo = "/redirect";
    await expect(egress.request(`http://127.0.0.1:${port}/redirect`, { redirects: 3 })).rejects.toThrow("more than 3");
    await egress.close();
  });

  test("an allowance is for one host and port", async () => {
    const egress = createEgress({ allowPrivate: () => [`127.0.0.1:${port + 1}`, `10.0.0.1:${port}`, "localhost:1"] });
    await expect(egress.request(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({ code: "egress_blocked" });
    await egress.close();
    expect(hits).toBe(0);
  });

  test("proxy variables are ignored", async () => {
    const before = { ...process.env };
    Object.assign(process.env, {
      HTTP_PROXY: `http://127.0.0.1:${port}`,
      http_proxy: `http://127.0.0.1:${port}`,
      NODE_USE_ENV_PROXY: "1",
    });
    const egress = createEgress({ resolver: async () => ["93.184.216.34"], connectTimeoutMs: 200 });
    await egress.request("http://example.com/", { timeoutMs: 400 }).catch(() => {});
    await egress.close();
    process.env = before;
    expect(hits).toBe(0);
  });
});
