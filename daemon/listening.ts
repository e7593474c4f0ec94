// Where the daemon listens and whether by TLS: flags first, then magic.yaml; and the origin that it can be called at.
import { X509Certificate } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { Foundation } from "./foundation.ts";
import type { Certificate } from "./http/tls/certificate.ts";
import { tlsMaterial } from "./http/tls/material.ts";
import type { Project } from "./project.ts";

export interface Listening {
  readonly host: string;
  /** Undefined: plain HTTP. */
  readonly tls: Certificate | undefined;
  /** The names that the certificate is for: callers may use them in Host. */
  readonly names: readonly string[];
}

export interface ListeningConfig {
  readonly host?: string;
  /** `tls`, `tls-cert`, `tls-key` are read. */
  readonly flags?: Readonly<Record<string, string | boolean | undefined>>;
}

/** @throws MagicError `config_invalid` for a certificate that cannot be used. */
export async function listeningOf({ project, state }: Foundation, config: ListeningConfig): Promise<Listening> {
  const { flags = {} } = config;
  const configured = project.current().daemon;
  const host = config.host ?? configured?.host ?? "127.0.0.1";
  const text = (flag: string) => (typeof flags[flag] === "string" ? flags[flag] : undefined);
  const certFile = text("tls-cert") ?? configured?.tls?.cert;
  const keyFile = text("tls-key") ?? configured?.tls?.key;
  const wanted =
    flags["tls"] === true || configured?.tls !== undefined || certFile !== undefined || keyFile !== undefined;
  const tls = wanted ? await tlsMaterial({ certFile, keyFile, state, host }) : undefined;
  return { host, tls, names: tls ? namesOf(tls) : [] };
}

// `DNS:magic.example.com, DNS:*.example.com, IP Address:...`: addresses need no name, they are compared as such.
function namesOf({ cert }: Certificate): string[] {
  const { subjectAltName = "" } = new X509Certificate(cert);
  return [...(subjectAltName ?? "").matchAll(/DNS:([^\s,"]+)/g)].map(([, name]) => name ?? "");
}

/** The origin that magic.yaml names for callers, which may be a proxy's; undefined without one, and where a variable makes it none. */
export function publicUrlOf(project: Pick<Project, "current">): URL | undefined {
  const url = URL.parse(project.current().daemon?.public_url ?? "");
  return url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` ? url : undefined;
}

/** Its name as a Host header's is compared. */
export function publicHostOf(project: Pick<Project, "current">): string | undefined {
  return publicUrlOf(project)?.hostname.replace(/^\[|\]$/g, "");
}

/** The origin of a server that listens. A wildcard address cannot be called: the loopback one is named instead. */
export function originOf({ host, tls }: Listening, fastify: FastifyInstance): string {
  const address = fastify.server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const name = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${tls ? "https" : "http"}://${name.includes(":") ? `[${name}]` : name}:${port}`;
}
