// Images named by URL, fetched for wires that take bytes only. The address is a stranger's choice: the dispatcher is the egress guard's,
// every redirect passes it again, no credential goes along, and what comes must be an image of bounded size.
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { readLocation } from "#contract/redirect.ts";
import { failure, UpstreamError } from "#daemon/gateway/providers/failure.ts";
import type { AbortNotice } from "#shared/abort.ts";
import { exchange } from "./exchange.ts";

const MAX_BYTES = 20 * 1024 * 1024;
const MAX_REDIRECTS = 3;
const TIMEOUT_MS = 15_000;
/** Of one request. */
const AT_ONCE = 8;
const MAX_TOGETHER = 64 * 1024 * 1024;

export interface Image {
  readonly mediaType: string;
  readonly data: Buffer;
}

/**
 * Fetches the images of one request: a few at a time, together no larger than a body may be, and none after one that was not to be had. Throws
 * UpstreamError (`invalid`) for that one, naming its place in the request.
 */
export function imageFetcher(
  dispatcher: Dispatcher,
  options: { readonly signal: AbortNotice },
): (url: string, param: string) => Promise<Image> {
  const lanes: Promise<unknown>[] = [];
  let asked = 0;
  let left = MAX_TOGETHER;
  let failed: { readonly error: unknown } | null = null;
  async function fetched(url: string, param: string): Promise<Image> {
    if (failed) throw failed.error;
    try {
      const image = await fetchImage(dispatcher, url, options);
      left -= image.data.length;
      if (left < 0) throw refused(`those of the request have more than ${MAX_TOGETHER} bytes together`);
      return image;
    } catch (error) {
      failed ??= { error: placed(error, param) };
      throw failed.error;
    }
  }
  return (url, param) => {
    const lane = asked++ % AT_ONCE;
    const image = (lanes[lane] ?? Promise.resolve()).then(() => fetched(url, param));
    lanes[lane] = image.catch(() => undefined);
    return image;
  };
}

const UNSEEN: Image = { mediaType: "image/png", data: Buffer.from("\x89PNG\r\n\x1a\n", "latin1") };

/** In the place of a fetcher where nothing may be sent: some image, for every URL that one would be asked for at. */
export async function imageUnseen(url: string, param: string): Promise<Image> {
  try {
    parse(url);
    return UNSEEN;
  } catch (error) {
    throw placed(error, param);
  }
}

async function fetchImage(
  dispatcher: Dispatcher,
  url: string,
  options: { readonly signal: AbortNotice },
): Promise<Image> {
  let at = parse(url);
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const { status, headers, data } = await get(dispatcher, at, options.signal);
    const location = headers["location"];
    if (status >= 300 && status < 400 && typeof location === "string") {
      at = parse(readLocation(location), at);
      continue;
    }
    if (status !== 200) throw refused(`it answered ${status}`);
    const mediaType = imageType(data);
    if (!mediaType) throw refused("it is no PNG, JPEG, GIF or WebP image");
    return { mediaType, data };
  }
  throw refused(`it redirects more than ${MAX_REDIRECTS} times`);
}

function parse(url: string, base?: URL): URL {
  let parsed: URL;
  try {
    parsed = new URL(url, base);
  } catch {
    throw refused("its URL is not valid");
  }
  if (parsed.protocol !== "https:" && parsed.protocol !== "http:") throw refused("its URL is not http or https");
  if (parsed.username || parsed.password) throw refused("its URL holds credentials");
  return parsed;
}

function get(
  dispatcher: Dispatcher,
  url: URL,
  signal: AbortNotice,
): Promise<{ status: number; headers: IncomingHttpHeaders; data: Buffer }> {
  return new Promise((resolve, reject) => {
    let status = 0;
    let headers: IncomingHttpHeaders = {};
    const parts: Buffer[] = [];
    const fields = { accept: "image/*", "accept-encoding": "identity", "user-agent": "magic" };
    exchange(
      dispatcher,
      { origin: url.origin, method: "GET", path: url.pathname + url.search, headers: fields, body: null },
      {
        head(code, got) {
          status = code;
          headers = got;
        },
        data: (chunk) => void parts.push(chunk),
        end: () => resolve({ status, headers, data: Buffer.concat(parts) }),
        fail: (problem) => reject(problem.kind === "aborted" ? new UpstreamError(problem) : refused(ofServer(problem))),
      },
      { signal, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES },
    );
  });
}

/** By the first bytes: a server's word for it is not to be trusted. Null for anything else. */
export function imageType(data: Buffer): string | null {
  if (data.length >= 8 && data.readUInt32BE(0) === 0x89504e47) return "image/png";
  if (data.length >= 3 && data.readUIntBE(0, 3) === 0xffd8ff) return "image/jpeg";
  const head = data.toString("latin1", 0, 12);
  if (head.startsWith("GIF8")) return "image/gif";
  if (head.startsWith("RIFF") && head.endsWith("WEBP")) return "image/webp";
  return null;
}

function ofServer({ message }: { readonly message: string }): string {
  return message.replace(/^The provider/, "its server").replace(/\.$/, "");
}

function refused(why: string): UpstreamError {
  return new UpstreamError(failure("invalid", `An image cannot be fetched: ${why}.`, { code: "invalid_image_url" }));
}

function placed(error: unknown, param: string): unknown {
  const isRefusal = error instanceof UpstreamError && error.failure.kind === "invalid";
  return isRefusal ? new UpstreamError({ ...error.failure, param }) : error;
}
