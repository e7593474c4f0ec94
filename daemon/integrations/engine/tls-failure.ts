// Whether two ends came to no terms about TLS: the server has none, or its certificate does not hold.

// OpenSSL's and Node's words, and of mysql2, which lays its own over them.
const codes = /CERT|^UNABLE_TO_|^ERR_(TLS|SSL)_|^EPROTO$|^HANDSHAKE_(NO_)?SSL_/;
// pg's have no code.
const words = /^The server does not support SSL|establishing an SSL connection/;

/** Nothing was said yet of what the connection is for, so it is no matter of source or destination. */
export function isTlsFailure({ code, message }: Error & { readonly code?: unknown }): boolean {
  return codes.test(String(code ?? "")) || words.test(message);
}
