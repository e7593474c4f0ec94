// COPY FROM STDIN as a stream. pg-copy-streams forgets its connection when the server reports an error; a write that ends after that asks
// it for more, and the process would die of it. Here what is left then goes nowhere: the next COPY would take it for its own.
import type { CopyStreamQuery } from "pg-copy-streams";

/** The stream for `client.query(...)`: it takes the bytes, and ends when the server has them. */
export async function copyFrom(sql: string, options: { highWaterMark?: number } = {}): Promise<CopyStreamQuery> {
  const { from } = (await import("pg-copy-streams")).default;
  const stream = from(sql, options);
  let connection: unknown = nowhere;
  Object.defineProperty(stream, "connection", {
    get: () => connection,
    set: (given: unknown) => {
      connection = given ?? nowhere;
    },
  });
  return stream;
}

const nowhere = { stream: { write: () => true }, sendCopyFail() {} };
