import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { createHostGuard } from "#daemon/http/guards/host.ts";

const request = (host: string, localAddress = "127.0.0.1") =>
  ({ url: "/", rawHeaders: ["Host", host], headers: { host }, socket: { localAddress } }) as unknown as IncomingMessage;

const guard = createHostGuard({ host: "0.0.0.0", names: ["magic.example.com", "*.internal.example"] });

test.each([
  ["magic.example.com", true],
  ["MAGIC.example.com:8443", true],
  ["a.internal.example", true],
  ["127.0.0.1:1", true],
  ["[::1]:4141", true],
  ["192.0.2.7", true],
  ["192.0.2.8", false],
  ["internal.example", false],
  ["a.b.internal.example", false],
  ["evil-internal.example", false],
  ["magic.example.com.evil.example", false],
  ["localhost.", false],
  ["127.0.0.1.evil.example", false],
  ["0.0.0.0", false],
  ["2130706433", false],
  ["*.internal.example", false],
])("Host %s is the daemon's own: %s", (host, own) => {
  const check = () => guard(request(host, "192.0.2.7"));
  if (own) expect(check).not.toThrow();
  else expect(check).toThrow();
});
