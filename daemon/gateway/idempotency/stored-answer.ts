// The form in which a keyed call's answer is stored, sealed: a line of JSON with status and headers, then the bytes as they were sent.
import type { GatewayAnswer } from "#daemon/gateway/call.ts";

/** Latin-1 text, so that every byte comes back as it was. */
export function encodeAnswer(
  { status, headers }: Pick<GatewayAnswer, "status" | "headers">,
  stream: boolean,
  body: readonly Uint8Array[],
): string {
  const head = JSON.stringify({ status, headers, stream });
  return Buffer.concat([Buffer.from(`${head}\n`), ...body]).toString("latin1");
}

/** The answer as it was given, streams as one frame. */
export function decodeAnswer(stored: string): GatewayAnswer {
  const bytes = Buffer.from(stored, "latin1");
  const cut = bytes.indexOf(10);
  const { status, headers, stream } = JSON.parse(bytes.toString("utf8", 0, cut)) as {
    status: number;
    headers: Record<string, string>;
    stream: boolean;
  };
  const body = bytes.subarray(cut + 1);
  if (!stream) return { status, headers, body };
  return { status, headers, stream: { pipe: async (sink) => void sink.write(body) } };
}
