// A server's certificate is checked against the name in the URL, though the connection goes to the address that the egress guard chose.
import { writeFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeCertificate } from "#daemon/http/tls/certificate.ts";
import { openSource } from "#daemon/integrations/connectors/open.ts";
import { folderOfFile } from "#test/temporary.ts";
import { sync } from "./harness.ts";

const folder = folderOfFile();
const ca = join(folder, "ca.pem");
const certificate = makeCertificate(["db.example"], new Date(), 1);
let postgres: net.Server;
let mysql: net.Server;

beforeAll(async () => {
  writeFileSync(ca, certificate.cert);
  // Both speak as far as TLS and then refuse the login.
  postgres = await listen((socket) =>
    socket.once("data", () => {
      socket.write("S");
      secured(socket, (secure) => {
        const body = Buffer.from("SFATAL\0C28P01\0Mno\0\0");
        const head = Buffer.from("E\0\0\0\0");
        head.writeUInt32BE(body.length + 4, 1);
        secure.end(Buffer.concat([head, body]));
      });
    }),
  );
  mysql = await listen((socket) => {
    socket.write(packet(0, greeting));
    socket.once("data", (chunk: Buffer) => {
      // The SSL request has 36 bytes; what follows may come with it.
      socket.pause();
      socket.unshift(chunk.subarray(36));
      secured(socket, (secure) => secure.end(packet(3, Buffer.from("\xff\x15\x04#28000no", "latin1"))));
    });
  });
});
afterAll(() => {
  postgres.close();
  mysql.close();
});

test("PostgreSQL and MySQL: the right name passes, another name does not", async () => {
  for (const [scheme, server] of [
    ["postgres", postgres],
    ["mysql", mysql],
  ] as const)
    for (const [host, code] of [
      ["db.example", "credentials_rejected"],
      ["other.example", "unreachable"],
    ] as const) {
      const { port } = server.address() as net.AddressInfo;
      const url = `${scheme}://u:p@${host}:${port}/x?sslmode=verify-full&sslrootcert=${ca}`;
      const source = await openSource({ url, object: "x", address: "127.0.0.1" });
      const failure = await source.check().catch((error: Error & { code: string }) => error);
      await source.close();
      expect([scheme, host, failure]).toMatchObject([scheme, host, { code }]);
      if (host === "other.example") expect((failure as Error).message).toContain("altnames");
    }
});

test("sslmode=prefer takes a PostgreSQL server without TLS, require does not", async () => {
  const refusal = "SFATAL\0C28P01\0Mno\0\0";
  // "N" to who asks for TLS, a refused login to who does not.
  const plain = await listen((socket) =>
    socket.on("data", (chunk: Buffer) => {
      if (chunk.length === 8) return void socket.write("N");
      const head = Buffer.from("E\0\0\0\0");
      head.writeUInt32BE(refusal.length + 4, 1);
      socket.end(Buffer.concat([head, Buffer.from(refusal)]));
    }),
  );
  const { port } = plain.address() as net.AddressInfo;
  for (const [mode, code] of [
    ["prefer", "credentials_rejected"],
    ["require", "unreachable"],
  ]) {
    const source = await openSource({ url: `postgres://u:p@127.0.0.1:${port}/x?sslmode=${mode}`, object: "x" });
    await expect(source.check()).rejects.toMatchObject({ code });
    await source.close();
  }
  plain.close();
});

test("a destination without TLS where the URL asks for it has refused no row: it is not reached", async () => {
  const servers = {
    postgres: await listen((socket) => socket.once("data", () => socket.write("N"))),
    // 0x0800, CLIENT_SSL, among its abilities.
    mysql: await listen((socket) => {
      const without = Buffer.from(greeting);
      without.writeUInt16LE(without.readUInt16LE(20) & ~0x0800, 20);
      socket.write(packet(0, without));
    }),
  };
  const table = join(folder, "t.csv");
  writeFileSync(table, "a\n1\n");
  for (const [scheme, server] of Object.entries(servers)) {
    const { port } = server.address() as net.AddressInfo;
    const url = `${scheme}://u:p@127.0.0.1:${port}/x?sslmode=require`;
    const outcome = await sync({ from: table, object: "t", to: url, table: "x.t" });
    server.close();
    expect([scheme, outcome.error]).toMatchObject([scheme, { code: "unreachable" }]);
  }
});

function listen(serve: (socket: net.Socket) => void): Promise<net.Server> {
  const server = net.createServer((socket) => serve(socket.on("error", () => {})));
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

function secured(socket: net.Socket, greet: (secure: TLSSocket) => void): void {
  const secure = new TLSSocket(socket, { isServer: true, cert: certificate.cert, key: certificate.key });
  secure.on("error", () => {});
  secure.once("data", () => greet(secure));
}

function packet(sequence: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([body.length & 0xff, body.length >> 8, 0, sequence]), body]);
}

// Protocol::HandshakeV10 with CLIENT_SSL and mysql_native_password.
const greeting = Buffer.concat([
  Buffer.from("\x0a8.0.0\0\x01\0\0\0", "latin1"),
  Buffer.from("12345678\0\xff\xff\x2d\x02\0\xff\xc1\x15", "latin1"),
  Buffer.alloc(10),
  Buffer.from("123456789012\0mysql_native_password\0", "latin1"),
]);
