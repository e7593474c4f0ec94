// A certificate for this machine, signed by itself: X.509 v3 (RFC 5280), ECDSA on P-256, good for TLS servers alone.
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import { DAY_MS } from "#shared/clock.ts";
import { bits, boolean, explicit, implicit, integer, objectId, octets, sequence, set, time, utf8 } from "./der.ts";

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

const ids = {
  commonName: "2.5.4.3",
  ecdsaWithSha256: "1.2.840.10045.4.3.2",
  basicConstraints: "2.5.29.19",
  keyUsage: "2.5.29.15",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
  subjectAlternativeName: "2.5.29.17",
};

/** For these host names and addresses, from an hour ago (clocks differ) for `days` days. */
export function makeCertificate(names: readonly string[], now: Date, days: number): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(objectId(ids.ecdsaWithSha256));
  const name = sequence(set(sequence(objectId(ids.commonName), utf8("magic local daemon"))));
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  const extension = (id: string, content: Buffer, critical = false) =>
    sequence(objectId(id), ...(critical ? [boolean(true)] : []), octets(content));
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(serial),
    algorithm,
    name,
    sequence(time(new Date(now.getTime() - 3_600_000)), time(new Date(now.getTime() + days * DAY_MS))),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    explicit(
      3,
      sequence(
        extension(ids.basicConstraints, sequence(), true),
        // digitalSignature
        extension(ids.keyUsage, bits(Buffer.from([0x80]), 7), true),
        extension(ids.extendedKeyUsage, sequence(objectId(ids.serverAuth))),
        extension(ids.subjectAlternativeName, sequence(...names.map(alternativeName))),
      ),
    ),
  );
  const der = sequence(body, algorithm, bits(sign("sha256", body, privateKey)));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function alternativeName(name: string): Buffer {
  return isIP(name) ? implicit(7, addressBytes(name)) : implicit(2, Buffer.from(name, "ascii"));
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = address.split("::");
  const groups = (part: string | undefined) => (part ? part.split(":").map((group) => Number.parseInt(group, 16)) : []);
  const [before, after] = [groups(head), groups(tail)];
  const zeros = Array<number>(Math.max(0, 8 - before.length - after.length)).fill(0);
  return Buffer.from([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}
