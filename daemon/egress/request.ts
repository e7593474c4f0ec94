// One exchange over the guarded dispatcher, bounded in time and bytes. Redirects are the caller's.
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { Dispatcher } from "undici";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { untilAborted } from "#shared/abort.ts";
import { serverFailure } from "./server-failure.ts";

export interface EgressRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | null;
  readonly signal?: AbortSignal | undefined;
  /** For the whole exchange. */
  readonly timeoutMs?: number;
  /** The largest body accepted, also once decoded. */
  readonly maxBytes?: number;
  /** Only status and headers count: whatever comes of the body, beyond the limits too, the answer stands; its body is empty. */
  readonly ignoreBody?: boolean;
}

export interface EgressResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export async function sendRequest(
  dispatcher: Dispatcher,
  target: string | URL,
  { method = "GET", headers = {}, body = null, timeoutMs = 30_000, signal: caller, ...limits }: EgressRequest = {},
): Promise<EgressResponse> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = caller ? AbortSignal.any([caller, timeout]) : timeout;
  const url = checkedUrl(target);
  try {
    return await exchange(dispatcher, url, { method, headers, body }, signal, limits);
  } catch (error) {
    throw explained(error, url, timeout, caller, timeoutMs);
  }
}

function checkedUrl(target: string | URL): URL {
  const url = typeof target === "string" ? URL.parse(target) : target;
  if (url === null) throw new MagicError("egress_blocked", "the address is not a URL");
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new MagicError("egress_blocked", `${url.protocol} addresses are not reachable: http and https only`);
  if (url.username !== "" || url.password !== "")
    throw new MagicError("egress_blocked", "the address holds a user name: send credentials in a header");
  return url;
}

async function exchange(
  dispatcher: Dispatcher,
  url: URL,
  { method, headers, body }: Required<Pick<EgressRequest, "method" | "headers" | "body">>,
  signal: AbortSignal,
  { maxBytes = 16 * 1024 * 1024, ignoreBody = false }: Pick<EgressRequest, "maxBytes" | "ignoreBody">,
): Promise<EgressResponse> {
  const asked = dispatcher.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method: method as Dispatcher.HttpMethod,
    headers: { "accept-encoding": "identity", ...headers },
    body,
    signal,
  });
  // undici looks at the signal once it is connected, which may take its time by itself; then nothing is sent any more.
  const answer = await untilAborted(asked, signal);
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(answer.headers))
    if (value !== undefined) flat[name] = Array.isArray(value) ? value.join(", ") : value;
  const head = { status: answer.statusCode, headers: flat };
  if (ignoreBody) {
    // Read away, for the connection to serve again; one that is too long or too slow is cut off with its connection.
    await answer.body.dump({ limit: maxBytes, signal }).catch(() => undefined);
    return { ...head, body: Buffer.alloc(0) };
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      answer.body.destroy();
      throw new MagicError("upstream_error", `${url.host} answered with more than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return { ...head, body: await decode(Buffer.concat(chunks), flat["content-encoding"], maxBytes) };
}

// Some servers compress although identity was asked for. The cap holds for what comes out.
async function decode(body: Buffer, encoding: string | undefined, maxOutputLength: number): Promise<Buffer> {
  const name = encoding?.trim().toLowerCase();
  if (body.length === 0 || name === undefined || name === "" || name === "identity") return body;
  const decoder = { gzip: gunzip, "x-gzip": gunzip, deflate: inflate, br: brotliDecompress }[name];
  if (decoder === undefined) throw new MagicError("upstream_error", `the answer's encoding ${name} is not known`);
  try {
    return await promisify<Buffer, { maxOutputLength: number }, Buffer>(decoder)(body, { maxOutputLength });
  } catch (error) {
    throw new MagicError("upstream_error", "the compressed answer cannot be decoded within its limit", {
      cause: error,
    });
  }
}

function explained(
  error: unknown,
  url: URL,
  timeout: AbortSignal,
  caller: AbortSignal | undefined,
  timeoutMs: number,
): Error {
  if (isMagicError(error)) return error as MagicError;
  if (caller?.aborted) return new MagicError("client_closed", "the caller left", { cause: error });
  const name = (error as { code?: string }).code ?? "";
  if (timeout.aborted || name.endsWith("_TIMEOUT") || name === "ETIMEDOUT")
    return new MagicError("upstream_timeout", `${url.host} did not answer within ${timeoutMs} ms`, { cause: error });
  return new MagicError("upstream_error", `${url.host} ${serverFailure(error)}`, { cause: error });
}
