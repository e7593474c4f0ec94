// What went wrong between the daemon and a server, in words that a handler's author can act on. Nothing of the daemon's inside is told.
import { isMagicError, MagicError } from "#contract/errors.ts";
import { serverFailure } from "#daemon/egress/server-failure.ts";

export function explained(error: unknown, url: URL): Error {
  if (isMagicError(error)) return error;
  const cause = (error as { cause?: unknown }).cause;
  if (isMagicError(cause)) return cause;
  const { code = "", name } = error as { code?: string; name: string };
  if (name === "AbortError") return new MagicError("client_closed", "the request was canceled");
  const failed = (what: string): MagicError =>
    new MagicError("upstream_error", `${url.host} ${what}`, { cause: error });
  if (code === "UND_ERR_REQ_CONTENT_LENGTH_MISMATCH")
    return new MagicError("invalid_request", "the body has another length than it was given", { cause: error });
  if (code.endsWith("_TIMEOUT") || code === "ETIMEDOUT")
    return new MagicError("upstream_timeout", `${url.host} did not answer in time`, { cause: error });
  if (/^(Z_|ZSTD_|ERR__|ERR_BROTLI)/.test(code)) return failed(`sent a body that cannot be decoded: ${code}`);
  return failed(serverFailure(error));
}
