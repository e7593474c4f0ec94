// Server-side request forgery through http:egress, from a real handler in a real cell: its contract declares every address that it tries,
// so that nothing but the egress guard stands between it and the canary.
import { createSocket, type Socket } from "node:dgram";
import { Resolver } from "node:dns/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent } from "undici";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { EgressPort } from "#daemon/controllers/ports.ts";
import { createEgress, type Egress } from "#daemon/egress/egress.ts";
import { loopback, ssrfVariants } from "#test/egress/variants.ts";
import { type Bench, openBench } from "./harness.ts";

const handler = `export default async ({ input }) => Promise.all(input.map(async ([url, init]) => {
  try { const answer = await fetch(url, init); return answer.status + " " + (await answer.text()).slice(0, 100); }
  catch (error) { return error.code ?? error.name; }
}));`;
const refused = /^(egress_blocked|invalid_request|TypeError|ERR_INVALID_URL)$/;

let hits = 0;
let port = 0;
let door = 0;
let names = 0;
const servers: Server[] = [];
let dns: Socket;
let egress: Egress;
let resolver: Resolver;
const wired: EgressPort[] = [];

beforeAll(async () => {
  const canary: RequestListener = (_request, response) => {
    hits++;
    response.end("canary");
  };
  port = await listen(canary, "0.0.0.0", 0);
  await listen(canary, "::1", port).catch(() => {});
  // The one private place that the operator opened: it answers with a redirect to wherever the query says.
  door = await listen(
    ({ url = "" }, response) =>
      void response
        .writeHead(Number(/[?&]status=(\d+)/.exec(url)?.[1] ?? 302), {
          // encodeURI would take the brackets off an IPv6 address.
          location: encodeURI(decodeURIComponent(/[?&]to=([^&]*)/.exec(url)?.[1] ?? "")).replace(
            /%5[BD]/g,
            decodeURIComponent,
          ),
        })
        .end(),
    "127.0.0.1",
    0,
  );
  dns = await startDns();
  resolver = new Resolver({ timeout: 2_000, tries: 1 });
  resolver.setServers([`127.0.0.1:${dns.address().port}`]);
  egress = createEgress({
    allowPrivate: () => [`127.0.0.1:${door}`],
    connectTimeoutMs: 300,
    resolver: async (name) => {
      const [four, six] = await Promise.all([
        resolver.resolve4(name).catch(() => []),
        resolver.resolve6(name).catch(() => []),
      ]);
      return [...four, ...six];
    },
  });
  wired.push(egress);
});
afterAll(async () => {
  for (const server of servers) server.close();
  dns.close();
  await egress.close();
});

async function listen(listener: RequestListener, host: string, at: number): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(at, host, resolve));
  servers.push(server);
  return (server.address() as AddressInfo).port;
}

/** Asks the handler, whose contract declares every host and port of `urls`. */
async function ask(bench: Bench, requests: readonly (readonly [string, object?])[], declared: readonly string[]) {
  const http = [...declared, `http://127.0.0.1:${door}/`].flatMap((text) => {
    const url = URL.parse(text);
    if (!url || !/^https?:$/.test(url.protocol) || url.hostname === "") return [];
    const scheme = url.protocol.slice(0, -1) as "http" | "https";
    return [{ host: url.hostname, port: Number(url.port || (scheme === "http" ? 80 : 443)), scheme }];
  });
  const limits = { timeout_ms: 25_000 };
  await bench.deploy("reach", handler, {
    version: `1.0.${names++}`,
    capabilities: ["http:egress"],
    scopes: { http },
    limits,
  });
  const outcomes: string[] = [];
  for (let at = 0; at < requests.length; at += 50)
    outcomes.push(...((await bench.invoke("reach", requests.slice(at, at + 50))) as string[]));
  return outcomes;
}

function judge(urls: readonly string[], outcomes: readonly string[]): void {
  const through = urls
    .map((url, at) => `${JSON.stringify(url)}: ${outcomes[at]}`)
    .filter((line, at) => {
      if (refused.test(outcomes[at] ?? "")) return false;
      // A host that is no host at all may fail to resolve instead.
      return !(outcomes[at] === "upstream_error" && /%|[^\x20-\x7e]/.test(line));
    });
  expect(through).toEqual([]);
  expect(hits).toBe(0);
}

test("at least 150 forms of a private address: none reaches the canary, nor does any as a redirect's target", async () => {
  const bench = await openBench({ ports: { egress }, zygotes: 1 });
  const urls = ssrfVariants(port);
  expect(urls.length).toBeGreaterThanOrEqual(150);
  // A data: address holds its own answer; nothing is asked for it, unless a redirect leads there.
  const sent = urls.filter((url) => !url.startsWith("data:"));
  judge(
    sent,
    await ask(
      bench,
      sent.map((url) => [url] as const),
      sent,
    ),
  );
  // As they are where a Location header can carry them, else as the URL that they mean; what means none leads nowhere.
  const absolute = urls.flatMap((url) => {
    const meant = URL.parse(url)?.href ?? [];
    return /^[a-z+]+:\/\/[^\s\\]*$/i.test(url) && URL.canParse(url) ? url : meant;
  });
  expect(absolute.length).toBeGreaterThanOrEqual(140);
  for (const status of [302, 307]) {
    const hops = absolute.map(
      (url) => [`http://127.0.0.1:${door}/?status=${status}&to=${encodeURIComponent(url)}`] as const,
    );
    judge(absolute, await ask(bench, hops, urls));
  }
});

test("names that the DNS points inside, also only the second time, lead nowhere", async () => {
  const bench = await openBench({ ports: { egress }, zygotes: 1 });
  const inside = Object.keys(zone).map((name) => `http://${name}:${port}/`);
  for (let round = 0; round < 3; round++) {
    const direct = await ask(
      bench,
      inside.map((url) => [url] as const),
      inside,
    );
    const hops = inside.map((url) => [`http://127.0.0.1:${door}/?to=${encodeURIComponent(url)}`] as const);
    // What was public when it was checked is where the connection goes, and nobody answers there.
    for (const [at, outcome] of [...direct, ...(await ask(bench, hops, inside))].entries())
      expect(outcome, inside[at % inside.length]).toMatch(/^(egress_blocked|upstream_error|upstream_timeout)$/);
  }
  expect(asked).toBeGreaterThan(12);
  expect(hits).toBe(0);
});

test("control: without the guard the same handler reaches the canary dozens of times", async () => {
  const agent = new Agent();
  const open: EgressPort = { dispatcher: agent, addresses: async () => [] };
  const bench = await openBench({ ports: { egress: open }, zygotes: 1 });
  const urls = loopback.map((host) => `http://${host}:${port}/`);
  const outcomes = await ask(
    bench,
    urls.map((url) => [url] as const),
    urls,
  );
  expect(hits).toBeGreaterThanOrEqual(25);
  expect(outcomes.filter((one) => one === "200 canary").length).toBe(hits);
  await agent.destroy();
});

// --- a DNS server of a few lines (RFC 1035): what each name answers, in turn
type Answer = { readonly a?: string; readonly aaaa?: string; readonly cname?: string };
const PUBLIC = "198.51.100.77";
const zone: Record<string, readonly (readonly Answer[])[]> = {
  "loopback.test": [[{ a: "127.0.0.1" }]],
  "metadata.test": [[{ a: "169.254.169.254" }]],
  "six.test": [[{ aaaa: "::1" }]],
  "mapped.test": [[{ aaaa: "::ffff:127.0.0.1" }]],
  "nat64.test": [[{ aaaa: "64:ff9b::7f00:1" }]],
  "mixed.test": [[{ a: "93.184.216.34" }, { a: "127.0.0.1" }]],
  "alias.test": [[{ cname: "inner.test" }, { a: "127.0.0.1" }]],
  "rebind.test": [[{ a: "93.184.216.34" }], [{ a: "127.0.0.1" }]],
  "flip.test": [[{ a: "127.0.0.1" }], [{ a: PUBLIC }]],
};
let asked = 0;
const turns = new Map<string, number>();

async function startDns(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    asked++;
    const labels: string[] = [];
    let at = 12;
    for (let size = query[at] as number; size > 0; size = query[at] as number) {
      labels.push(query.toString("latin1", at + 1, at + 1 + size));
      at += 1 + size;
    }
    const type = query.readUInt16BE(at + 1);
    const name = labels.join(".").toLowerCase();
    const turn = turns.get(`${name} ${type}`) ?? 0;
    turns.set(`${name} ${type}`, turn + 1);
    const rounds = zone[name] ?? [[]];
    const records = (rounds[turn % rounds.length] ?? []).flatMap((answer) => recordOf(answer, type));
    const header = Buffer.from([query[0] as number, query[1] as number, 0x84, 0, 0, 1, 0, records.length, 0, 0, 0, 0]);
    socket.send(Buffer.concat([header, query.subarray(12, at + 5), ...records]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return socket;
}

/** A resource record with no time to live; a name that is an alias owns the address that follows. */
function recordOf(answer: Answer, type: number): Buffer[] {
  const owner = Buffer.from([0xc0, 12]);
  const record = (kind: number, data: Buffer): Buffer => {
    const fixed = Buffer.alloc(10);
    fixed.writeUInt16BE(kind, 0);
    fixed.writeUInt16BE(1, 2);
    fixed.writeUInt16BE(data.length, 8);
    return Buffer.concat([owner, fixed, data]);
  };
  if (answer.cname)
    return [
      record(
        5,
        Buffer.concat([
          ...answer.cname.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
          Buffer.from([0]),
        ]),
      ),
    ];
  if (answer.a && type === 1) return [record(1, Buffer.from(answer.a.split(".").map(Number)))];
  if (answer.aaaa && type === 28) return [record(28, bytesOf(answer.aaaa))];
  return [];
}

function bytesOf(address: string): Buffer {
  const [head = "", tail = ""] = URL.parse(`http://[${address}]`)?.hostname.slice(1, -1).split("::") ?? [];
  const words = (text: string): number[] =>
    text
      .split(":")
      .filter(Boolean)
      .map((word) => Number.parseInt(word, 16));
  const all = [
    ...words(head),
    ...new Array<number>(8 - words(head).length - words(tail).length).fill(0),
    ...words(tail),
  ];
  return Buffer.from(all.flatMap((word) => [word >> 8, word & 255]));
}
