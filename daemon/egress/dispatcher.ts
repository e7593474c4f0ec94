// The guard as undici's connector: whatever is sent through this dispatcher is decided on the address that it connects to.
import { Agent, buildConnector, type Dispatcher } from "undici";
import { MagicError } from "#contract/errors.ts";
import type { Guard } from "./guard.ts";

export interface DispatcherOptions {
  readonly connectTimeoutMs?: number;
  readonly headersTimeoutMs?: number;
  /** The longest silence within a body. */
  readonly bodyTimeoutMs?: number;
  /** More certificate authorities, PEM. */
  readonly ca?: string | undefined;
}

/** A pool of connections. It ignores proxy variables and follows no redirects. */
export function guardedDispatcher(
  guard: Guard,
  { connectTimeoutMs = 10_000, headersTimeoutMs = 60_000, bodyTimeoutMs = 60_000, ca }: DispatcherOptions = {},
): Dispatcher {
  const connector = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    autoSelectFamily: false,
    ...(ca ? { ca } : {}),
  });

  const connect: buildConnector.connector = (options, callback) => {
    const port = Number(options.port || (options.protocol === "https:" ? 443 : 80));
    guard.addresses(options.hostname, port).then(
      (addresses) => attempt(addresses, 0),
      (error: Error) => callback(error, null),
    );

    function attempt(addresses: readonly string[], index: number): void {
      // `hostname` is where the socket goes; `host` and `servername` stay the name that was asked for.
      connector({ ...options, hostname: addresses[index] ?? "" }, (...[error, socket]) => {
        if (error !== null) {
          if (index + 1 < addresses.length) attempt(addresses, index + 1);
          else callback(error, null);
        } else if (guard.mayUse(socket.remoteAddress, options.hostname, port)) callback(null, socket);
        else {
          socket.destroy();
          callback(new MagicError("egress_blocked", `${options.hostname} led to an address that is not public`), null);
        }
      });
    }
  };
  // Less than the 5 s after which uvicorn (vLLM, SGLang) and Node close an idle connection: a request that meets the close is lost.
  return new Agent({ connect, headersTimeout: headersTimeoutMs, bodyTimeout: bodyTimeoutMs, keepAliveTimeout: 4_000 });
}
