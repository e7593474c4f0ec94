// TLS: 1.3 and nothing older, with a local certificate or the user's; and no credential over plain HTTP beyond loopback.
import { execFileSync, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:https";
import { type AddressInfo, connect as dial } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { answerMalformed } from "#daemon/http/client-error.ts";
import { makeCertificate } from "#daemon/http/tls/certificate.ts";
import { time } from "#daemon/http/tls/der.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon } from "./daemon.ts";

function handshake(url: string, maxVersion: "TLSv1.2" | "TLSv1.3"): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(
      { host: hostname, port: Number(port), maxVersion, minVersion: "TLSv1.2", rejectUnauthorized: false },
      () => {
        resolve(String(socket.getProtocol()));
        socket.destroy();
      },
    );
    socket.once("error", reject);
  });
}

function get(url: string, ca: string, token: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(url, { ca, headers: { authorization: `Bearer ${token}` } }, (answer) => {
      answer.resume();
      answer.once("end", () => resolve(answer.statusCode));
    })
      .once("error", reject)
      .end();
  });
}

test("a local certificate is made, kept at 0600, trusted by name and address, and used again", async () => {
  const daemon = await startDaemon({ flags: { tls: true } });
  onTestFinished(() => daemon.close());
  expect(daemon.url).toMatch(/^https:/);
  const path = join(daemon.root, ".magic", "tls", "cert.pem");
  const ca = readFileSync(path, "utf8");
  for (const file of [path, join(daemon.root, ".magic", "tls", "key.pem")])
    expect(statSync(file).mode & 0o777).toBe(0o600);
  const { local_token } = daemon.app.credentials;
  const { port } = new URL(daemon.url);
  for (const host of ["127.0.0.1", "localhost"])
    expect(await get(`https://${host}:${port}/v1/keys`, ca, local_token)).toBe(200);
  await daemon.restart();
  expect(readFileSync(path, "utf8")).toBe(ca);
});

test("TLS 1.3 is served, TLS 1.2 is refused, plain HTTP gets nothing", async () => {
  const daemon = await startDaemon({ flags: { tls: true } });
  onTestFinished(() => daemon.close());
  expect(await handshake(daemon.url, "TLSv1.3")).toBe("TLSv1.3");
  await expect(handshake(daemon.url, "TLSv1.2")).rejects.toThrow();
  await expect(fetch(daemon.url.replace("https:", "http:"))).rejects.toThrow();
});

test("the user's certificate is served; half a pair, a missing file and a foreign key are refused", async () => {
  const folder = temporaryFolder();
  const [own, other] = [makeCertificate(["localhost"], new Date(), 30), makeCertificate(["localhost"], new Date(), 30)];
  const files = { cert: join(folder, "c.pem"), key: join(folder, "k.pem"), foreign: join(folder, "f.pem") };
  writeFileSync(files.cert, own.cert);
  writeFileSync(files.key, own.key);
  writeFileSync(files.foreign, other.key);
  const daemon = await startDaemon({ flags: { "tls-cert": files.cert, "tls-key": files.key } });
  onTestFinished(() => daemon.close());
  const { port } = new URL(daemon.url);
  expect(await get(`https://localhost:${port}/health`, own.cert, "none")).toBe(200);
  for (const flags of [
    { "tls-cert": files.cert },
    { "tls-cert": files.cert, "tls-key": join(folder, "missing.pem") },
    { "tls-cert": files.cert, "tls-key": files.foreign },
  ])
    await expect(startDaemon({ flags })).rejects.toMatchObject({ code: "config_invalid" });
});

test("a handshake that is not ended in time ends its connection", async () => {
  const own = makeCertificate(["localhost"], new Date(), 30);
  const server = createServer({ ...own, handshakeTimeout: 20 })
    .on("clientError", answerMalformed)
    .listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  await once(dial((server.address() as AddressInfo).port, "127.0.0.1").resume(), "close");
});

const noOpenssl = spawnSync("openssl", ["version"]).status !== 0;

test.skipIf(noOpenssl)("the certificate is well-formed X.509 by two readers", () => {
  const { cert } = makeCertificate(["localhost", "127.0.0.1", "::1", "2001:db8::a"], new Date(), 397);
  const read = new X509Certificate(cert);
  expect(read.verify(read.publicKey)).toBe(true);
  expect(read.ca).toBe(false);
  for (const address of ["127.0.0.1", "::1", "2001:db8::a"]) expect(read.checkIP(address)).toBe(address);
  expect(read.checkHost("localhost")).toBe("localhost");
  const openssl = execFileSync("openssl", ["x509", "-noout", "-text"], { input: cert, encoding: "utf8" });
  expect(openssl).toContain("TLS Web Server Authentication");
  // Readers that keep to RFC 5280 take a year of four digits from 2050 on alone.
  const tagged = ["2049-12-31T23:59:59.999Z", "2050-01-01T00:00:00Z"].map((at) =>
    time(new Date(at)).toString("latin1"),
  );
  expect(tagged).toEqual(["\x17\x0d491231235959Z", "\x18\x0f20500101000000Z"]);
});

const outside = Object.values(networkInterfaces())
  .flat()
  .find((one) => one && !one.internal && one.family === "IPv4")?.address;

test.skipIf(outside === undefined)("credentials over plain HTTP beyond loopback are refused, not read", async () => {
  const daemon = await startDaemon({ host: "0.0.0.0" });
  onTestFinished(() => daemon.close());
  const { port } = new URL(daemon.url);
  const { admin_key, local_token, api_key } = daemon.app.credentials;
  for (const token of [admin_key, local_token, api_key]) {
    const answer = await fetch(`http://${outside}:${port}/v1/keys`, { headers: { authorization: `Bearer ${token}` } });
    expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([403, "tls_required"]);
  }
  expect((await fetch(`http://${outside}:${port}/health`)).status).toBe(200);
});

test.skipIf(outside === undefined)(
  "one that listens on all addresses is trusted by them, and says so of its endpoints",
  async () => {
    const daemon = await startDaemon({ host: "0.0.0.0", flags: { tls: true } });
    onTestFinished(() => daemon.close());
    const ca = readFileSync(join(daemon.root, ".magic", "tls", "cert.pem"), "utf8");
    const there = `https://${outside}:${new URL(daemon.url).port}`;
    const chunks: Buffer[] = [];
    const asked = request(`${there}/.well-known/oauth-authorization-server`, { ca }, (answer) => {
      answer.on("data", (chunk) => chunks.push(chunk));
    }).end();
    await once(asked, "close");
    expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({
      token_endpoint: `${there}/v1/auth/token`,
      jwks_uri: `${there}/.well-known/jwks.json`,
    });
  },
);
