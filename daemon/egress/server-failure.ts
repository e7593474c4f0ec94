// What became of an exchange that brought no answer, in words that whoever asked can act on. Nothing of the daemon's inside is told.

/** undici's and Node's codes: what the server did. */
const meanings: Readonly<Record<string, string>> = {
  UND_ERR_HEADERS_OVERFLOW: "answered with more headers than are read (16 kB)",
  UND_ERR_SOCKET: "closed the connection before its answer was complete",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "answered with another length than it had announced",
  ECONNRESET: "broke the connection off",
  EPIPE: "broke the connection off",
  ERR_ASSERTION: "does not speak HTTP",
};

/** To stand behind the server's name. */
export function serverFailure(error: unknown): string {
  const { code = "", message, name } = error as { code?: string; message: string; name: string };
  const meaning = meanings[code];
  if (meaning !== undefined) return meaning;
  if (name === "HTTPParserError") return `does not speak HTTP: ${message}`;
  return `cannot be reached: ${code || message}`;
}
