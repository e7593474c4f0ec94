// What answers at a database's address and is none, or breaks the protocol: it is said so at once, and no process ends or spins over it.
import net from "node:net";
import { afterEach, expect, test } from "vitest";
import { openEither } from "#daemon/integrations/connectors/open.ts";
import { askWorker, startWorker } from "#shared/sync-worker.ts";
import { memoryTokens } from "#shared/token-ipc.ts";
import { listen } from "#test/listen.ts";
import { within } from "#test/patience.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

/** `first`: the server speaks before its client does. */
async function serving(answer: string | Buffer, first = false): Promise<number> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    if (first) socket.write(answer);
    else socket.once("data", () => socket.write(answer));
  });
  const { port, close } = await listen(server);
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    return close();
  });
  return port;
}

const http = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";

const tlsAlert = Buffer.from("15030300020228", "hex");

test.each([
  ["HTTP", http, false],
  ["Redis", "-ERR unknown command\r\n", false],
  ["SSH", "SSH-2.0-OpenSSH_9.6\r\n", true],
  ["SMTP", "220 mail.example.com ESMTP\r\n", true],
  ["TLS", tlsAlert, false],
  ["MySQL", Buffer.from("0a0000000a352e372e34300061", "hex"), true],
  ["zeros", Buffer.alloc(64), true],
  ["ones", Buffer.alloc(64, 0xff), true],
  ["PostgreSQL before 7.4", "EFATAL:  unsupported frontend protocol\n\0", false],
])(
  "a server of %s is no PostgreSQL, which is said without waiting for the rest of a message",
  async (_, answer, first) => {
    for (const [query, words] of [
      ["", "does not speak PostgreSQL's protocol"],
      ["?sslmode=require", "SSL"],
    ]) {
      const url = `postgres://user@127.0.0.1:${await serving(answer, first)}/x${query}`;
      const side = await openEither({ url, object: "" }, [], memoryTokens());
      const began = performance.now();
      await expect(side.check()).rejects.toMatchObject({
        code: "unreachable",
        message: expect.stringContaining(words as string),
      });
      expect(performance.now() - began).toBeLessThan(within(2000));
      await side.close();
    }
  },
);

test.each([
  ["HTTP", http],
  ["SSH", "SSH-2.0-OpenSSH_9.6\r\n"],
  ["TLS", tlsAlert],
  ["a packet without anything in it", Buffer.alloc(4)],
  ["half a greeting", Buffer.from("010000000a", "hex")],
  ["the protocol of MySQL 3.20", Buffer.from("10000000093332300000", "hex")],
])("a server that greets with %s is no MySQL", async (_, greeting) => {
  const url = `mysql://user@127.0.0.1:${await serving(greeting, true)}/x`;
  const side = await openEither({ url, object: "" }, [], memoryTokens());
  const began = performance.now();
  await expect(side.check()).rejects.toMatchObject({
    code: "unreachable",
    message: expect.stringContaining("does not speak MySQL's protocol"),
  });
  expect(performance.now() - began).toBeLessThan(within(2000));
  await side.close();
});

test.each([
  ["an authentication that nobody knows", Buffer.from("520000000800000063", "hex"), "credentials_rejected"],
  ["an error without an end", Buffer.from("450000000753580041", "hex"), "connection_lost"],
  ["an error without anything", Buffer.from("4500000004", "hex"), "connection_lost"],
  [
    "a row of minus two columns",
    Buffer.from("52000000080000000044000000 06fffe".replace(" ", ""), "hex"),
    "connection_lost",
  ],
  ["a message shorter than its length", Buffer.from("5200000008000000005300000003", "hex"), "connection_lost"],
])("a PostgreSQL server that sends %s is refused, and the process that asked it lives", async (_, answer, code) => {
  const url = `postgres://user@127.0.0.1:${await serving(answer)}/x`;
  const question = { type: "check", end: { url, object: "" }, allow_private: "any" } as const;
  const asked = askWorker(question, AbortSignal.timeout(20_000), memoryTokens(), startWorker);
  await expect(asked).rejects.toMatchObject({ code });
});
