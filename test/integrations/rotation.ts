// A vendor that replaces the refresh token at every use and refuses the old one for ever, and syncs that read from it.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { expect, onTestFinished } from "vitest";
import { makeFolder } from "#shared/make-folder.ts";
import { listen } from "#test/listen.ts";
import { temporaryFolder } from "#test/temporary.ts";
import { startDaemon } from "./daemon.ts";
import { writeProject } from "./receiver.ts";
import { live } from "./runs.ts";

export interface Vendor {
  readonly origin: string;
  readonly address: string;
  /** Refreshes that were granted, and those refused because the token had been used before. */
  granted: number;
  reused: number;
  /** Ends the access token that was given last. */
  expire(): void;
  /** As on its first day: only the first refresh token is good. */
  restart(): void;
  /** What is done before an answer. */
  beforeToken: () => Promise<void>;
  beforePage: (page: string) => Promise<void>;
}

export async function rotatingVendor(): Promise<Vendor> {
  let [refresh, access] = ["refresh-canary-0", "none"];
  const json = (response: ServerResponse, body: unknown, status = 200) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://vendor");
    const form = new URLSearchParams(await text(request));
    if (url.pathname === "/token") {
      if (form.get("refresh_token") !== refresh) {
        vendor.reused++;
        json(response, { error: "invalid_grant" }, 400);
        return;
      }
      vendor.granted++;
      [refresh, access] = [`refresh-canary-${vendor.granted}`, `access-canary-${vendor.granted}`];
      const answer = { access_token: access, refresh_token: refresh, expires_in: 3600 };
      await vendor.beforeToken();
      json(response, answer);
      return;
    }
    const page = url.searchParams.get("page") ?? "1";
    await vendor.beforePage(page);
    if (request.headers.authorization !== `Bearer ${access}`) json(response, { error: "expired" }, 401);
    else json(response, { items: page === "1" ? [{ id: 1 }, { id: 2 }] : page === "2" ? [{ id: 3 }] : [] });
  });
  const { address, origin, close } = await listen(server);
  onTestFinished(close);
  const vendor: Vendor = {
    ...{ origin, address, granted: 0, reused: 0 },
    expire: () => {
      access = "none";
    },
    restart: () => {
      [refresh, access] = ["refresh-canary-0", "none"];
      Object.assign(vendor, { granted: 0, reused: 0 });
    },
    beforeToken: async () => {},
    beforePage: async () => {},
  };
  return vendor;
}

export function rotatingManifest(origin: string, updater: boolean): string {
  return JSON.stringify({
    ...{ version: "6.0.0", type: "DeclarativeSource", check: { type: "CheckStream", stream_names: ["items"] } },
    streams: [
      {
        ...{ type: "DeclarativeStream", name: "items", primary_key: ["id"] },
        retriever: {
          type: "SimpleRetriever",
          requester: {
            ...{ type: "HttpRequester", url_base: origin, path: "/items", http_method: "GET" },
            authenticator: {
              ...{ type: "OAuthAuthenticator", token_refresh_endpoint: `${origin}/token`, client_id: "magic" },
              refresh_token: "{{ config['refresh_token'] }}",
              ...(updater ? { refresh_token_updater: { refresh_token_config_path: ["refresh_token"] } } : {}),
            },
          },
          record_selector: { type: "RecordSelector", extractor: { type: "DpathExtractor", field_path: ["items"] } },
          paginator: {
            type: "DefaultPaginator",
            page_token_option: { type: "RequestOption", inject_into: "request_parameter", field_name: "page" },
            pagination_strategy: {
              type: "PageIncrement",
              start_from_page: 1,
              page_size: 1,
              inject_on_first_request: true,
            },
          },
        },
        schema_loader: {
          type: "InlineSchemaLoader",
          schema: { type: "object", properties: { id: { type: "integer" } } },
        },
      },
    ],
    spec: { type: "Spec", connection_specification: { type: "object", properties: {} } },
  });
}

export async function startRotating(updater: boolean) {
  const vendor = await rotatingVendor();
  const [root, home] = [temporaryFolder(), temporaryFolder()];
  writeProject(root, { egress: { allow_private: [vendor.address] } });
  makeFolder(join(root, "connectors"));
  writeFileSync(join(root, "connectors", "rotating.yaml"), rotatingManifest(vendor.origin, updater));
  const start = () => startDaemon({ root, env: { MAGIC_HOME: home } });
  const daemon = await start();
  const made = async (path: string, body: object): Promise<string> => {
    const answer = await daemon.call("POST", path, body, live);
    expect(answer.status, JSON.stringify(answer.body)).toBe(201);
    return answer.body.id;
  };
  const source = await made("/v1/connections", {
    provider: "rotating",
    credentials: { refresh_token: "refresh-canary-0" },
  });
  const newSync = async (name: string, from = source) =>
    made("/v1/syncs", {
      source: { connection: from, object: "items" },
      destination: {
        connection: await made("/v1/connections", { provider: "jsonl", config: { path: join(root, `${name}.jsonl`) } }),
        table: "items",
      },
    });
  return { vendor, root, home, daemon, start, made, source, newSync };
}

export function storedConnections(root: string): readonly unknown[] {
  const db = new DatabaseSync(join(root, ".magic", "magic.db"), { readOnly: true });
  try {
    return db.prepare("select * from connection").all();
  } finally {
    db.close();
  }
}

export function workers(): number[] {
  return readdirSync("/proc").flatMap((name) => {
    try {
      const [, parent] = /^PPid:\t(\d+)/m.exec(readFileSync(`/proc/${name}/status`, "utf8")) ?? [];
      const ours = Number(parent) === process.pid;
      return ours && readFileSync(`/proc/${name}/cmdline`, "utf8").includes("sync-worker") ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

export function latch(): { readonly open: Promise<void>; release(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  return { open: promise, release: resolve };
}
