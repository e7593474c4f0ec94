// WebSocket upgrades pass the same guards as requests: Host, Origin, credential, scope. What is refused gets an HTTP answer, as does CONNECT.
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { FastifyInstance } from "fastify";
import { type WebSocket, WebSocketServer } from "ws";
import { isMagicError, MagicError } from "#contract/errors.ts";
import type { Principal, Scope } from "#contract/identity.ts";
import type { AuditedCall } from "#daemon/identity/audit/trail.ts";
import { type NewestOn, onceClosed } from "./activity.ts";
import { actionOf, claimedEnvironment } from "./audit.ts";
import { answerFor, forCaller } from "./error-forms.ts";
import { type Authenticator, checkExposure, remoteOf } from "./guards/authenticate.ts";
import type { HostGuard } from "./guards/host.ts";
import { requestIdOf } from "./request-id.ts";
import { anonymous } from "./route-config.ts";

export interface Upgrade {
  readonly path: string;
  readonly scope: Scope;
  /** Throws a MagicError to refuse; returns what takes over the socket. */
  accept(query: URLSearchParams, principal: Principal): (socket: WebSocket) => void;
}

export interface UpgradeOptions {
  readonly authenticator: Authenticator;
  readonly hostGuard: HostGuard;
  readonly host: string;
  readonly draining: () => boolean;
  readonly newestOn: NewestOn;
  /** Told of every upgrade, refused ones too: for the audit log. */
  readonly onAnswer: (answered: AuditedCall) => void;
}

/** Bytes that a client may send in one message: nobody has more than a few words to say. */
const MAX_MESSAGE = 64 * 1024;
const CLOSE_GRACE = 500;
/** Milliseconds between looks at the credential of an open socket: one that has ended gets nothing more than a second later. */
const LOOK_EVERY = 500;
const { STATUS_CODES } = process.getBuiltinModule("node:http");

/** How many sockets are open stays with the returned count; all are closed, with 1001, before the server closes. */
export function useUpgrades(
  app: FastifyInstance,
  options: UpgradeOptions,
  upgrades: readonly Upgrade[],
): { open(): number } {
  const server = new WebSocketServer({ noServer: true, maxPayload: MAX_MESSAGE, perMessageDeflate: false });
  const refusals = new WeakMap<IncomingMessage, (error: Error) => void>();
  server.on("wsClientError", (error, _socket, request) => refusals.get(request)?.(error));
  const onUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on("error", () => socket.destroy());
    const unknown = { ...anonymous, environment: claimedEnvironment(request.headers) };
    const caller: Caller = { principal: unknown, action: "unknown", requestId: requestIdOf(request) };
    const tell = (status: number) => options.onAnswer(callOf(caller, status));
    const refused = (error: unknown) => tell(refuse(socket, error, caller));
    refusals.set(request, (error) => refused(noHandshake(error)));
    const answer = () =>
      admit(request, options, upgrades, caller).then((serve) => {
        server.handleUpgrade(request, socket, head, (opened) => {
          tell(101);
          closeWithCredential(opened, () => principalOf(request, options));
          serve(opened);
        });
      }, refused);
    // The answers to requests before it belong before its own, and not among a socket's frames.
    const before = options.newestOn(request.socket);
    if (before) onceClosed(before.raw, answer);
    else answer();
  };
  app.server.on("upgrade", onUpgrade);
  // Node hands over the socket as well, and hangs up where nobody takes it.
  app.server.on("connect", onUpgrade);
  app.addHook("preClose", async () => {
    for (const socket of server.clients) socket.close(1001, "the daemon is stopping");
    const until = Date.now() + CLOSE_GRACE;
    while (server.clients.size > 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
    for (const socket of server.clients) socket.terminate();
  });
  return { open: () => server.clients.size };
}

// What is known of who asked for what, however far it came.
interface Caller {
  principal: Principal;
  action: string;
  readonly requestId: string;
}

function callOf({ principal, action, requestId }: Caller, status: number): AuditedCall {
  const { type, id, environment } = principal;
  return { identity: { type, id }, environment, action, resource: null, status, requestId };
}

async function admit(
  request: IncomingMessage,
  options: UpgradeOptions,
  upgrades: readonly Upgrade[],
  caller: Caller,
): Promise<(socket: WebSocket) => void> {
  if (request.method === "CONNECT")
    throw new MagicError("method_not_allowed", "No tunnel leads from here.", { headers: { allow: "" } });
  options.hostGuard(request);
  if (options.draining()) throw new MagicError("draining");
  const address = URL.parse(request.url ?? "/", "http://localhost");
  const upgrade = upgrades.find(({ path }) => path === address?.pathname);
  if (!upgrade || !address) throw new MagicError("not_found");
  caller.action = actionOf("GET", upgrade.path);
  const principal = await principalOf(request, options);
  caller.principal = principal;
  checkExposure(options.host, remoteOf(request), principal);
  if (!principal.scopes.has(upgrade.scope))
    throw new MagicError("insufficient_scope", `The scope ${upgrade.scope} is missing.`, {
      extra: { scope: upgrade.scope },
    });
  return upgrade.accept(address.searchParams, principal);
}

async function principalOf(request: IncomingMessage, { authenticator, host }: UpgradeOptions): Promise<Principal> {
  const remote = remoteOf(request);
  checkExposure(host, remote);
  return authenticator.authenticate(request.headers, remote);
}

// RFC 6455, section 4.4: with the versions that are spoken.
function noHandshake({ message }: Error): MagicError {
  return new MagicError("invalid_request", `${message}.`, { headers: { "sec-websocket-version": "13, 8" } });
}

// A socket outlives the request that opened it, and must not outlive its credential: revoked, rolled or expired ends it. What a
// credential may do never changes, so who it is need not be asked again; a database that is away for a moment refuses nobody.
const ended: ReadonlySet<string> = new Set(["invalid_key", "expired"]);
function closeWithCredential(socket: WebSocket, authenticate: () => Promise<Principal>): void {
  const timer = setInterval(() => {
    authenticate().catch((error: unknown) => {
      if (isMagicError(error) && ended.has(error.code)) socket.close(1008, "the credential is no longer good");
    });
  }, LOOK_EVERY).unref();
  socket.once("close", () => clearInterval(timer));
}

// Answers with the status that it refused with.
function refuse(socket: Duplex, error: unknown, { requestId, principal }: Caller): number {
  const known = forCaller(isMagicError(error) ? error : new MagicError("internal"), principal);
  const { status, headers, body } = answerFor(known, "problem", requestId);
  const text = JSON.stringify(body);
  const lines = Object.entries({
    ...headers,
    "x-request-id": requestId,
    "x-content-type-options": "nosniff",
    "content-length": Buffer.byteLength(text),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  // No time-out of the server's counts here any more: who does not hang up would keep the connection.
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n${text}`, () => socket.destroy());
  return status;
}
