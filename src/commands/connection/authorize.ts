// The browser's way through a provider's OAuth: a page on loopback, good once, takes the outcome; and `magic connection authorize`.
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ApiClient } from "#client/http.ts";
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { type Context, defineCommand } from "#commands/command.ts";
import { given, objectValue } from "#commands/option-values.ts";
import { MagicError } from "#contract/errors.ts";
import type { Connection } from "#contract/wire/connections.ts";
import { openInBrowser } from "#output/open.ts";
import { onAbort } from "#shared/abort.ts";
import { wholeNumbers } from "#shared/json-text.ts";
import { showConnection } from "./show.ts";

interface Options {
  readonly config?: string;
  readonly credentials?: string;
  readonly browser?: boolean;
}

export default defineCommand<Options>({
  handlesInterrupt: true,
  configure: (command) =>
    command
      .argument("<id>", "the connection's id")
      .option("--config <json|@file>", "merged into what is there, e.g. another client_id")
      .option("--credentials <@file|->", "likewise, e.g. client_secret")
      .option("--no-browser", "print the address alone"),
  async run(context) {
    const { options, output, args, signal } = context;
    const client = await clientOf(context);
    const path = `/v1/connections/${pathPart(args[0])}`;
    const { id, provider } = await client.request<Connection>("GET", path, { signal });
    const config = await objectValue(options.config, "--config", wholeNumbers);
    const credentials = await objectValue(options.credentials, "--credentials", wholeNumbers);
    const body = given({ provider, connection: id, config, credentials });
    const connection = await authorize(client, body, { ...context, browser: options.browser !== false });
    output.result(connection, showConnection(connection));
  },
});

export interface Authorizing extends Pick<Context<unknown>, "output" | "signal" | "globals"> {
  /** Open the provider's page, where a person sits at this terminal. */
  readonly browser: boolean;
}

/**
 * Sends the user to the provider and waits for the way back; `start` is the body of POST /v1/connections/oauth/start.
 * @throws MagicError the daemon's refusal, `credentials_rejected` with the provider's, `interrupted`, `upstream_timeout`.
 */
export async function authorize(
  client: ApiClient,
  start: Readonly<Record<string, unknown>>,
  { output, signal, globals, browser }: Authorizing,
): Promise<Connection> {
  const page = await outcomePage();
  try {
    const body = { ...start, callback_url: page.url };
    const begun = await client.request<Begun>("POST", "/v1/connections/oauth/start", { body, signal });
    const address = begun.authorization_url;
    if (browser && output.interactive) await openInBrowser(address).catch(() => undefined);
    // Without the address nobody could go on: it is said with --quiet too.
    (globals.quiet ? output.warn : output.note)(`Authorize it in your browser: ${address}`);
    const outcome = await untilThen(page.outcome, Date.parse(begun.expires_at) - Date.now(), signal);
    const id = outcome.get("connection");
    if (id === null)
      throw new MagicError(
        "credentials_rejected",
        `The provider did not authorize it: ${outcome.get("error_description") ?? outcome.get("error") ?? "no reason given"}.`,
        { extra: { error: outcome.get("error") } },
      );
    return await client.request<Connection>("GET", `/v1/connections/${pathPart(id)}`, { signal });
  } finally {
    page.close();
  }
}

interface Begun {
  readonly authorization_url: string;
  readonly expires_at: string;
}

// Its path is a secret of this command: no other page of the browser can end the wait.
async function outcomePage(): Promise<{ url: string; outcome: Promise<URLSearchParams>; close(): void }> {
  const path = `/${randomBytes(16).toString("hex")}`;
  const { promise, resolve: settle } = Promise.withResolvers<URLSearchParams>();
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const address = URL.parse(request.url ?? "/", "http://127.0.0.1");
    const outcome = address?.pathname === path ? address.searchParams : undefined;
    const text = !outcome
      ? "There is nothing here."
      : outcome.has("connection")
        ? "Connected. You may close this page."
        : "Not connected: the terminal says why. You may close this page.";
    response.writeHead(outcome ? 200 : 404, { "content-type": "text/plain; charset=utf-8", connection: "close" });
    response.end(`${text}\n`, () => {
      if (outcome) settle(outcome);
    });
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${path}`,
    outcome: promise,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function untilThen<T>(wanted: Promise<T>, milliseconds: number, signal: AbortSignal): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const timer = setTimeout(
    () => reject(new MagicError("upstream_timeout", "Nobody came back from the provider in time: start it again.")),
    Math.max(0, milliseconds),
  );
  const forget = onAbort(signal, () => reject(new MagicError("interrupted", "Nothing was connected.")));
  wanted.then(resolve, reject);
  return promise.finally(() => {
    clearTimeout(timer);
    forget();
  });
}
