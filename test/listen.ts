// Where a server that a test plays can be reached, and how it ends.
import { Server as HttpServer } from "node:http";
import type { AddressInfo, Server } from "node:net";

export interface Listening {
  readonly port: number;
  /** `127.0.0.1:<port>` */
  readonly address: string;
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** An HTTP server ends with the connections that are open. */
  readonly close: () => Promise<void>;
}

/**
 * Lets it listen on a free port of loopback. An HTTP server leaves it to its clients to end a connection at rest: else, on a machine that
 * is busy, a request might meet its end.
 */
export async function listen(server: Server): Promise<Listening> {
  if (server instanceof HttpServer) server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const address = `127.0.0.1:${port}`;
  const close = async (): Promise<void> => {
    if (server instanceof HttpServer) server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { port, address, origin: `http://${address}`, close };
}
