// The HTTP server with everything that every request passes, in this order: id and log, Host and Origin, draining, who calls
// and with which scope, what it accepts; then the body, its schema, the handler. Routes are registered by app.ts.
import type { IncomingMessage, RequestListener, Server } from "node:http";
import type { Socket } from "node:net";
import fastify, { type FastifyInstance } from "fastify";
import { MagicError } from "#contract/errors.ts";
import type { AuditedCall } from "#daemon/identity/audit/trail.ts";
import type { Logger } from "#daemon/telemetry/log.ts";
import type { Metrics } from "#daemon/telemetry/metrics.ts";
import type { Tracer } from "#daemon/telemetry/trace.ts";
import type { Clock } from "#shared/clock.ts";
import { type Activity, type NewestOn, useActivity } from "./activity.ts";
import { BODY_LIMIT, useBodies } from "./body.ts";
import { answerMalformed, KEEP_ALIVE_MS } from "./client-error.ts";
import { sendError, useErrorHandler } from "./error-handler.ts";
import { useContentGuards } from "./guards/accept.ts";
import { type Authenticator, useAuthentication } from "./guards/authenticate.ts";
import { createHostGuard, type HostGuard } from "./guards/host.ts";
import { isOpenai, useNotFound } from "./not-found.ts";
import { useRequestEnd } from "./request-end.ts";
import { requestIdOf } from "./request-id.ts";
import { useRequestLog } from "./request-log.ts";
import { anonymous, requireRouteConfig } from "./route-config.ts";
import { useValidation } from "./validation.ts";

export interface HttpOptions {
  readonly host: string;
  readonly hostNames?: readonly string[];
  /** The name by which a proxy passes requests on. */
  readonly publicHost?: () => string | undefined;
  /** Certificate chain and key, PEM: TLS 1.3 and nothing else. Without it plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  /** True while the daemon is stopping: new requests on open connections are told to come back. */
  readonly draining?: () => boolean;
  /** Told of what is no HTTP, and of requests whose address cannot be routed: they pass no hook. For the audit log. */
  readonly onUnroutable: (call: AuditedCall) => void;
}

// An import of node:http reads every one of its exports, and one of them loads the whole of fetch: 40 ms of the start.
const http = process.getBuiltinModule("node:http");

/** Milliseconds: for all headers, for the whole request, and how often both are looked at. An answer may take any time. */
const timeouts = { headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 2_000 };

export interface Http {
  readonly fastify: FastifyInstance;
  readonly activity: Activity;
  /** For what does not come through Fastify: upgrades. */
  readonly hostGuard: HostGuard;
  /** Closes the connections that wait for nothing: a stop would wait for each. */
  closeIdle(): void;
}

export function createHttp(options: HttpOptions): Http {
  const { logger } = options;
  const tellUnroutable = (status: number, requestId: string): void => {
    const { type, id, environment } = anonymous;
    options.onUnroutable({ identity: { type, id }, environment, action: "unknown", resource: null, status, requestId });
  };
  const app: FastifyInstance = fastify({
    serverFactory: (handler) => newServer(handler as RequestListener, options.tls),
    genReqId: (raw) => requestIdOf(raw as IncomingMessage),
    bodyLimit: BODY_LIMIT,
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => answerMalformed(error, socket, activity.newestOn, tellUnroutable),
    frameworkErrors: (error, request, reply) => {
      reply.header("x-request-id", request.id).header("x-content-type-options", "nosniff");
      if (isOpenai(request.url)) request.route = { ...request.route, errors: "openai" };
      sendError(error, request, reply, logger);
      tellUnroutable(reply.statusCode, request.id);
    },
    // As long as headers may be: what is longer would be a 404 before anybody has asked who calls.
    routerOptions: { maxParamLength: http.maxHeaderSize },
  });
  requireRouteConfig(app);
  const refuseUnknown = useNotFound(app);
  useErrorHandler(app, logger);
  useValidation(app);
  useBodies(app);
  useRequestEnd(app, logger);
  const activity = useActivity(app);
  useRequestLog(app, options);
  const hostGuard = createHostGuard({ host: options.host, names: options.hostNames, publicHost: options.publicHost });
  app.addHook("onRequest", (request, _reply, done) => {
    hostGuard(request.raw);
    done();
  });
  app.addHook("onRequest", (_request, _reply, done) => {
    if (options.draining?.()) throw new MagicError("draining", "The daemon is stopping.", { retryAfterS: 2 });
    done();
  });
  useAuthentication(app, options);
  // What is nowhere is refused as such, whatever its body: no route, no media type that it should have.
  app.addHook("onRequest", (request, reply, done) => {
    if (request.route.url === undefined) refuseUnknown(request, reply);
    done();
  });
  // Not every database can look for it.
  app.addHook("onRequest", (request, _reply, done) => {
    if (request.url.includes("%00")) throw new MagicError("invalid_request", "The address holds a NUL character.");
    done();
  });
  useContentGuards(app);
  const closeIdle = idleCloser(app.server, options.tls !== undefined, activity.newestOn);
  return { fastify: app, activity, hostGuard, closeIdle };
}

// Node takes one for busy on which nothing has come yet, as clients open them ahead, or half a head.
export function idleCloser(server: Server, encrypted: boolean, newestOn: NewestOn): () => void {
  const sockets = new Set<Socket>();
  server.on(encrypted ? "secureConnection" : "connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.on("upgrade", ({ socket }: IncomingMessage) => sockets.delete(socket));
  return () => {
    for (const socket of sockets) if (!newestOn(socket) && socket.writableLength === 0) socket.destroy();
  };
}

// Every client has its own order of headers: in an ordinary object each order is a shape of its own, for which V8 compiles all that reads headers
// anew. It keeps none for an object without a prototype. What is set here Node fills.
class Received extends http.IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    this.headers = Object.create(null);
  }
}

function newServer(handler: RequestListener, tls: HttpOptions["tls"]): Server {
  const settings = {
    ...timeouts,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // The guard refuses a missing Host, with an answer that says so.
    requireHostHeader: false,
    IncomingMessage: Received,
    // Only WebSocket upgrades leave HTTP; a client that offers h2c is answered over HTTP/1.1.
    shouldUpgradeCallback: (request: IncomingMessage) => request.headers.upgrade?.toLowerCase() === "websocket",
  };
  // Node answers what else a client expects with a bare 417, past every hook; it may as well be ignored (RFC 9110, section 10.1.1).
  if (!tls) return http.createServer(settings, handler).on("checkExpectation", handler);
  const { createServer: createTlsServer } = process.getBuiltinModule("node:https");
  return createTlsServer(
    { ...settings, ...tls, minVersion: "TLSv1.3", handshakeTimeout: timeouts.headersTimeout },
    handler,
  ).on("checkExpectation", handler);
}
