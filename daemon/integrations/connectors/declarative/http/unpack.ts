// What an answer's body was packed into: gzip, zip, zlib. Nothing unfolds without bound.
import { gunzipSync, inflateSync } from "node:zlib";
import { unzipSync } from "fflate";
import { unreadable } from "./answer.ts";

const MAX_BYTES = 256 * 1024 * 1024;

/** A body that is no gzip stays as it is. */
export function gunzip(body: Buffer, url: string): Buffer {
  if (body[0] !== 0x1f || body[1] !== 0x8b) return body;
  try {
    return gunzipSync(body, { maxOutputLength: MAX_BYTES });
  } catch (error) {
    throw unreadable(url, "cannot be read as gzip", error);
  }
}

/** The files of an archive. */
export function unzip(body: Buffer, url: string): Buffer[] {
  try {
    let total = 0;
    const files = unzipSync(body, {
      filter: (file) => {
        total += file.originalSize;
        if (total > MAX_BYTES) throw new Error(`it holds more than ${MAX_BYTES} bytes`);
        return !file.name.endsWith("/");
      },
    });
    return Object.values(files).map((file) => Buffer.from(file));
  } catch (error) {
    throw unreadable(url, "cannot be read as zip", error);
  }
}

/** Text may begin as compressed data would: that stays as it is. */
export function inflated(body: Buffer): Buffer {
  try {
    return body[0] === 0x78 ? inflateSync(body, { maxOutputLength: MAX_BYTES }) : body;
  } catch {
    return body;
  }
}
