// What a PostgreSQL server sends, looked at before the driver reads it. Servers may be anybody's: at what is no message the driver throws
// where nobody can catch it, which would end the process, and an error without an end it reads for ever.
import type { Socket } from "node:net";
import type { Client } from "pg";

const HEADER_BYTES = 5;
const codes = (letters: string) => new Set([...letters].map((letter) => letter.charCodeAt(0)));
const KNOWN = codes("RKSvZTDCENA123InstGHWcdV");
/** With which a server may begin: an authentication request, ErrorResponse, NegotiateProtocolVersion, NoticeResponse. */
const FIRST = codes("REvN");
/** What may be long, as libpq has it: of anything else so much means that there is no message. */
const LONG = codes("TtDdVENA");
const SHORT_BYTES = 30_000;
/** ErrorResponse and NoticeResponse: fields, each a text that ends in a zero, and one zero more. */
const IN_FIELDS = codes("EN");

/** What a connection is cut with. */
export const noMessage = () => new Error("Connection terminated: what came is no message of PostgreSQL's");
/** And where not even the first one is: it is not the server that was meant. */
const noServer = () => new Error("what answers there does not speak PostgreSQL's protocol");

/** Makes a client that is not connected yet cut its connection where what comes is no message. */
export function guardMessages(client: Client): void {
  const { connection } = client as unknown as { connection: { attachListeners(stream: Socket): void } };
  const attach = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    attach(stream);
    const read = stream.listeners("data").at(-1) as (chunk: Buffer) => void;
    const look = messageCheck();
    stream.off("data", read).on("data", (chunk: Buffer) => {
      try {
        look(chunk);
        read(chunk);
      } catch (error) {
        const unreadable = error instanceof RangeError || error instanceof TypeError;
        stream.destroy(unreadable ? noMessage() : (error as Error));
      }
    });
  };
}

/** Takes what comes, cut anywhere. The driver checks no more than this does not: how long the parts of a message say that they are. */
function messageCheck(): (chunk: Buffer) => void {
  const header = Buffer.alloc(HEADER_BYTES);
  let began = false;
  let arrived = 0;
  let left = 0;
  // Of a message in fields its last two bytes so far, else zero; one without any field is a single zero.
  let inFields = false;
  let last = 0;
  return (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      if (left === 0) {
        const taken = chunk.copy(header, arrived, at, at + HEADER_BYTES - arrived);
        at += taken;
        arrived += taken;
        const code = header[0] ?? 0;
        if (!began && !FIRST.has(code)) throw noServer();
        if (arrived < HEADER_BYTES) return;
        arrived = 0;
        // A length counts itself.
        left = header.readUInt32BE(1) - 4;
        if (!began && left > SHORT_BYTES) throw noServer();
        began = true;
        inFields = IN_FIELDS.has(code);
        last = 0;
        if (!KNOWN.has(code) || left < (inFields ? 1 : 0) || (left > SHORT_BYTES && !LONG.has(code))) throw noMessage();
        continue;
      }
      const taken = Math.min(left, chunk.length - at);
      at += taken;
      left -= taken;
      if (!inFields) continue;
      last = taken === 1 ? ((last << 8) | (chunk[at - 1] ?? 0)) & 0xffff : chunk.readUInt16BE(at - 2);
      if (left === 0 && last !== 0) throw noMessage();
    }
  };
}
