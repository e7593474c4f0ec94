// What a body was before it was compressed for the way (RFC 9110, section 8.4): nobody asks for it, but manifests and vendors may.
import {
  brotliDecompressSync,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  type ZlibOptions,
  zstdDecompressSync,
} from "node:zlib";

type Open = (body: Buffer, options: ZlibOptions) => Buffer;

const openers: Readonly<Record<string, Open>> = {
  gzip: openGzip,
  "x-gzip": openGzip,
  deflate: openDeflate,
  br: (body, { maxOutputLength }) => brotliDecompressSync(body, { maxOutputLength }),
  zstd: (body, { maxOutputLength }) => zstdDecompressSync(body, { maxOutputLength }),
};

/** Throws where it is not what the header says, or larger than `maxOutputLength`. A coding that nobody knows here stays as it is. */
export function contentDecoded(body: Buffer, encoding: string | undefined, maxOutputLength: number): Buffer {
  if (!encoding || body.length === 0) return body;
  const codings = encoding.toLowerCase().split(",").reverse();
  return codings.reduce((inner, coding) => openers[coding.trim()]?.(inner, { maxOutputLength }) ?? inner, body);
}

// Some say so of what they did not compress.
function openGzip(body: Buffer, options: ZlibOptions): Buffer {
  return body[0] === 0x1f && body[1] === 0x8b ? gunzipSync(body, options) : body;
}

// With zlib's header as it should be, or without as some have it.
function openDeflate(body: Buffer, options: ZlibOptions): Buffer {
  const hasHeader = ((body[0] ?? 0) & 0x0f) === 8 && (((body[0] ?? 0) << 8) + (body[1] ?? 0)) % 31 === 0;
  return hasHeader ? inflateSync(body, options) : inflateRawSync(body, options);
}
