// One request over plain HTTP whose answer is read whole. fetch can do the same, but loading it takes four times the CPU time of
// all of this, and every command would pay for it.
import { type IncomingMessage, request } from "node:http";

export interface Sent {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

/** What of an answer's head is looked at; a Response has it too. */
export interface Head {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: Pick<Headers, "get" | "has">;
}

/** The answer and its text. Follows no redirect. Rejects with the system's error, or with an AbortError. */
export function exchange(url: URL, { method, headers, body, signal }: Sent): Promise<Head & { readonly body: string }> {
  return new Promise((resolve, reject) => {
    // A DELETE's body would have no length otherwise.
    const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
    // No connection is kept: a command asks once or twice, and one that stays would meet a daemon that was restarted.
    const asked = request(url, { method, headers: { ...headers, ...length }, signal, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("error", reject);
      answer.on("end", () => {
        if ((answer.statusCode ?? 0) >= 300 && (answer.statusCode ?? 0) < 400) reject(new Error("unexpected redirect"));
        else resolve({ ...head(answer), body: Buffer.concat(chunks).toString("utf8") });
      });
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

export function head({ statusCode: status = 0, headers }: IncomingMessage): Head {
  const get = (name: string) => {
    const value = headers[name.toLowerCase()];
    return value === undefined ? null : String(value);
  };
  return { ok: status >= 200 && status < 300, status, headers: { get, has: (name) => get(name) !== null } };
}
