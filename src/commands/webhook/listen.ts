// magic webhook listen: receives events on this machine, verifies and prints them. Without --secret it subscribes by itself and
// unsubscribes when it ends; the daemon must be allowed to reach it (egress.allow_private in magic.yaml).
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { ApiClient } from "#client/http.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { listValue, portOf } from "#commands/option-values.ts";
import { isMagicError, MagicError } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { type Webhook, webhookEvents } from "#contract/wire/webhooks.ts";
import type { Output } from "#output/output.ts";
import { printableJson } from "#output/paint.ts";
import { onAbort } from "#shared/abort.ts";
import { collect } from "#shared/collect.ts";
import { signatureProblem } from "#shared/webhook-signature.ts";

const MAX_BODY = 1024 * 1024;

export default defineCommand<{ port?: string; events?: string; secret?: string }>({
  handlesInterrupt: true,
  configure: (command) =>
    command
      .option("--port <n>", "where to listen (default: any free port)")
      .option("--events <list>", "what to subscribe to (default: everything); not with --secret")
      .option("--secret <whsec_...>", "of a webhook that exists: none is made"),
  async run(context) {
    const { options, output, signal } = context;
    if (options.secret !== undefined && options.events !== undefined)
      throw new MagicError("usage", "--events subscribes, and with --secret there is a webhook already: choose one.");
    let secret = secretOf(options.secret);
    const server = createServer(async (request, response) => {
      const body = await collect(request, MAX_BODY).then(String, unread);
      const problem =
        typeof body !== "string"
          ? body.problem
          : signatureProblem({ body, headers: request.headers }, secret ?? "", Date.now());
      response.writeHead(problem === undefined ? 204 : 400).end();
      print(output, request, typeof body === "string" ? body : "", problem);
    });
    const port = portOf(options.port) ?? 0;
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error: NodeJS.ErrnoException) =>
        reject(error.code === "EADDRINUSE" ? new MagicError("port_taken", `Port ${port} is taken.`) : error),
      );
      server.listen(port, "127.0.0.1", resolve);
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    let webhook: (Webhook & { secret: string }) | undefined;
    try {
      if (secret === undefined) {
        const events = listValue(options.events, "--events") ?? [...webhookEvents];
        webhook = await subscribe(await clientOf(context), url, events);
        secret = webhook.secret;
      }
      output.event({ type: "listening", url, webhook: webhook?.id ?? null }, () => `Listening on ${url}`);
      await new Promise<void>((resolve) => onAbort(signal, resolve));
    } finally {
      server.close();
      server.closeAllConnections();
      if (webhook) await unsubscribe(webhook, clientOf(context, { start: false })).catch(() => {});
    }
    return exitCodes.interrupted;
  },
});

function unread(error: NodeJS.ErrnoException): { problem: string } {
  return { problem: error.code === "ECONNRESET" ? "the body was broken off" : "the body is too large" };
}

// With a variable that is not set, or a slip, every event would be told to be forged.
function secretOf(text: string | undefined): string | undefined {
  if (text === undefined || /^(?:whsec_)?[A-Za-z0-9+/]+={0,2}$/.test(text)) return text;
  throw new MagicError("usage", "--secret takes what signs: base64, with whsec_ before it or without.", {
    extra: { next: "`magic webhook create` and `magic webhook roll` show it, once." },
  });
}

async function subscribe(client: ApiClient, url: string, events: string[]): Promise<Webhook & { secret: string }> {
  try {
    return await client.request("POST", "/v1/webhooks", { body: { url, events, description: "magic webhook listen" } });
  } catch (error) {
    if (!isMagicError(error) || error.code !== "egress_blocked") throw error;
    const { host } = new URL(url);
    const detail = `The daemon may not send to ${host}. Add it to magic.yaml, egress: { allow_private: ["${host}"] }, and pass --port ${host.split(":")[1]}.`;
    throw new MagicError("egress_blocked", detail, { cause: error });
  }
}

// Of the daemon that runs now: it may have been restarted, at another port.
async function unsubscribe({ id }: Webhook, client: Promise<ApiClient>): Promise<void> {
  await (await client).request("DELETE", `/v1/webhooks/${id}`);
}

function print(output: Output, request: IncomingMessage, body: string, problem: string | undefined): void {
  const id = request.headers["webhook-id"] ?? null;
  let payload: unknown = body;
  try {
    payload = JSON.parse(body);
  } catch {
    // Shown as it came.
  }
  const verified = problem === undefined;
  output.event({ type: "event", id, verified, problem: problem ?? null, payload }, (paint) =>
    [
      verified ? paint.green("✔") : `${paint.red("✖")} ${problem}`,
      `${(payload as { type?: string })?.type ?? ""} ${paint.dim(String(id))}`,
      printableJson(payload, 2),
    ].join(" "),
  );
}
