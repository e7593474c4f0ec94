// Server-side request forgery: every way we know of naming a private address, tried against a canary on loopback.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Agent, Agent as UnguardedAgent } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createEgress } from "#daemon/egress/egress.ts";
import { createGuard } from "#daemon/egress/guard.ts";
import { loopback, ssrfVariants } from "./variants.ts";

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

describe("every form of a private address is refused before a byte is sent", () => {
  const variants = (): string[] => ssrfVariants(port);

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

  test("a name is asked for once at a time, and five of a guard at once: those that hang hold up nobody else", async () => {
    const asked: string[] = [];
    const answers = new Map<string, () => void>();
    const guard = createGuard({
      resolver: (name) => {
        asked.push(name);
        return new Promise((resolve) => answers.set(name, () => resolve(["93.184.216.34"])));
      },
    });
    const found = Array.from({ length: 14 }, (_, i) => guard.addresses(`n${i >> 1}.example`, 443));
    const first = ["n0.example", "n1.example", "n2.example", "n3.example", "n4.example"];
    await expect.poll(() => asked).toEqual(first);
    answers.get("n3.example")?.();
    await Promise.all(found.slice(6, 8));
    await expect.poll(() => asked).toEqual([...first, "n5.example"]);
    for (const name of [...first, "n5.example"]) answers.get(name)?.();
    await expect.poll(() => asked).toHaveLength(7);
    answers.get("n6.example")?.();
    expect(new Set((await Promise.all(found)).flat())).toEqual(new Set(["93.184.216.34"]));
  });

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
  test("a redirect is handed to the caller, and its place is one to ask for anew", async () => {
    const egress = createEgress({ allowPrivate: () => [`127.0.0.1:${port}`] });
    for (const target of [
      `http://127.0.0.2:${port}/`,
      `http://[::1]:${port}/`,
      "http://169.254.169.254/",
      "file:///etc/passwd",
    ]) {
      redirectTo = target;
      const { status, headers } = await egress.request(`http://127.0.0.1:${port}/redirect`);
      expect([status, headers["location"]]).toEqual([302, target]);
      await expect(egress.request(target)).rejects.toMatchObject({ code: "egress_blocked" });
    }
    expect(hits).toBe(0);
    await egress.close();
  });

  test("an allowance is for one host and port, or for every port where it says so", async () => {
    const egress = createEgress({ allowPrivate: () => [`127.0.0.1:${port + 1}`, `10.0.0.1:${port}`, "localhost:1"] });
    await expect(egress.request(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({ code: "egress_blocked" });
    await egress.close();
    expect(hits).toBe(0);
    const every = createEgress({ allowPrivate: () => ["127.0.0.1:*"] });
    expect((await every.request(`http://127.0.0.1:${port}/`)).status).toBe(200);
    await expect(every.request(`http://127.0.0.2:${port}/`)).rejects.toMatchObject({ code: "egress_blocked" });
    await every.close();
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
