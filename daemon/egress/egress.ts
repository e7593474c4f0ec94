// The one way out. `dispatcher` is for those who stream, `request` for small exchanges, `addresses` for other protocols' drivers.
import type { Dispatcher } from "undici";
import { type DispatcherOptions, guardedDispatcher } from "./dispatcher.ts";
import { createGuard, type GuardOptions } from "./guard.ts";
import { type EgressRequest, type EgressResponse, sendRequest } from "./request.ts";

export interface Egress {
  readonly dispatcher: Dispatcher;
  /** @throws MagicError `egress_blocked`, `upstream_error`, `upstream_timeout`, `client_closed`. */
  request(url: string | URL, options?: EgressRequest): Promise<EgressResponse>;
  /**
   * Addresses that were checked, for a driver that opens its own socket: connect to one of these, not to the name.
   *
   * @throws MagicError `egress_blocked`, `upstream_error`.
   */
  addresses(hostname: string, port: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

export function createEgress(options: GuardOptions & DispatcherOptions = {}): Egress {
  const guard = createGuard(options);
  const dispatcher = guardedDispatcher(guard, options);
  return {
    dispatcher,
    request: (url, init) => sendRequest(dispatcher, url, init),
    addresses: guard.addresses,
    close: () => dispatcher.destroy(),
  };
}
