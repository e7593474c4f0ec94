// Content-Encoding of an upstream's answer. We ask for none (`accept-encoding: identity`), but some servers compress all the same.
// The cap on what comes out is exchange.ts's; here only the decoding, chunk by chunk.
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { type Failure, failure } from "#daemon/gateway/providers/failure.ts";

export interface BodyDecoder {
  write(chunk: Buffer): void;
  /** Calls back when the last decoded byte has been given out. */
  end(done: () => void): void;
  close(): void;
}

const decoders = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
};

/** Null where the body is not encoded. An unknown encoding fails the exchange at once. */
export function bodyDecoder(
  encoding: string | string[] | undefined,
  take: (chunk: Buffer) => void,
  fail: (problem: Failure) => void,
): BodyDecoder | null {
  const name = String(encoding ?? "")
    .trim()
    .toLowerCase();
  if (name === "identity" || name === "") return null;
  if (!Object.hasOwn(decoders, name)) {
    fail(failure("protocol", `The provider's answer is encoded as '${name.slice(0, 40)}', which nobody asked for.`));
    return null;
  }
  const stream = decoders[name as keyof typeof decoders]();
  stream.on("data", take);
  stream.on("error", () => fail(failure("protocol", `The provider's answer is not valid ${name}.`)));
  return {
    write: (chunk) => void stream.write(chunk),
    end(done) {
      stream.once("end", done);
      stream.end();
    },
    close: () => stream.destroy(),
  };
}
