// Bodies that are read whole.

/** Decoded bytes of an answer. */
export const MAX_ANSWER = 64 * 1024 * 1024;
/** Decoded bytes of an error's body. */
export const MAX_ERROR = 256 * 1024;

const BYTE_ORDER_MARK = Buffer.from("\ufeff");

/** One body of what came in parts. RFC 8259, 8.1: a byte order mark before JSON may be passed over. */
export function joined(parts: readonly Buffer[]): Buffer {
  const body = parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
  return body.subarray(0, 3).equals(BYTE_ORDER_MARK) ? body.subarray(3) : body;
}
