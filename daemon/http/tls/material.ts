// What the TLS listener serves: the user's certificate and key, or a local pair that is made here, kept, and renewed in time.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { DAY_MS } from "#shared/clock.ts";
import { isLoopback } from "#shared/loopback.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { localCertificate } from "#shared/paths.ts";
import { replaceFile } from "#shared/replace-file.ts";
import { userPair } from "#shared/user-pair.ts";
import { type Certificate, makeCertificate } from "./certificate.ts";

export interface TlsSettings {
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
  /** The state folder, where a local pair is kept. */
  readonly state: string;
  /** The address listened on. */
  readonly host: string;
}

const DAYS = 397;
const RENEW_MS = 14 * DAY_MS;

/** @throws MagicError `config_invalid` when the files are missing, do not belong together, or only one is named. */
export async function tlsMaterial(settings: TlsSettings): Promise<Certificate> {
  const { certFile, keyFile } = settings;
  if (certFile === undefined && keyFile === undefined) return localPair(settings);
  return userPair(certFile, keyFile);
}

async function localPair({ state, host }: TlsSettings): Promise<Certificate> {
  const names = namesOf(host);
  const files = { cert: localCertificate(state), key: join(state, "tls", "key.pem") };
  const [cert, key] = await Promise.all([files.cert, files.key].map((path) => readFile(path, "utf8").catch(() => "")));
  if (cert && key && isGood(cert, key, names)) return { cert, key };
  const made = makeCertificate(names, new Date(), DAYS);
  makeFolder(join(state, "tls"), 0o700);
  await replaceFile(files.key, made.key);
  await replaceFile(files.cert, made.cert);
  return made;
}

// In time, for every name that it will be called by, and whole.
function isGood(cert: string, key: string, names: readonly string[]): boolean {
  try {
    createSecureContext({ cert, key });
    const found = new X509Certificate(cert);
    const covers = names.every((name) => found.checkHost(name) ?? found.checkIP(name));
    return covers && found.validToDate.getTime() - Date.now() > RENEW_MS;
  } catch {
    return false;
  }
}

function namesOf(host: string): string[] {
  const wildcard = host === "0.0.0.0" || host === "::";
  return [
    ...new Set([
      "localhost",
      "127.0.0.1",
      "::1",
      ...(isLoopback(host) ? [] : [hostname()]),
      ...(wildcard ? ownAddresses() : [host]),
    ]),
  ];
}

// By which other machines call one that listens on all of them. IPv6 has addresses that change by the day: there it is the name.
function ownAddresses(): string[] {
  const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return all.filter(({ family, internal }) => family === "IPv4" && !internal).map(({ address }) => address);
}
