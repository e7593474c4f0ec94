// When the daemon was last used, and what must go on although nobody calls: what idle exit asks.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply } from "fastify";

export interface Activity {
  /** Milliseconds since a request last began or ended; health checks do not count. */
  idleFor(): number;
  /** The first holder that says that it must go on. */
  heldBy(): Promise<string | undefined>;
  /** The reply to the last request of a connection whose answer is not out yet, or that is still being sent. */
  readonly newestOn: NewestOn;
  /** Adds a reason to go on, such as an enabled schedule. */
  hold(name: string, holds: () => boolean | Promise<boolean>): void;
}

export type NewestOn = (connection: Socket) => FastifyReply | undefined;

export function useActivity(app: FastifyInstance): Activity {
  const holders = new Map<string, () => boolean | Promise<boolean>>();
  let last = performance.now();
  let open = 0;
  // No set of those that are open: the tables that one outgrows, again and again, V8 keeps until the next full collection, and with a reply
  // the whole call. This one is as large as there are connections, since no entry is taken out.
  const newest = new WeakMap<Socket, FastifyReply | undefined>();
  const close = (reply: FastifyReply): void => {
    const { socket } = reply.request.raw;
    open--;
    if (newest.get(socket) === reply) newest.set(socket, undefined);
  };
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.route.quiet) last = request.startedAt;
    open++;
    newest.set(request.raw.socket, reply);
    done();
  });
  app.onRequestEnd((request, reply, _status, endedAt) => {
    if (!request.route.quiet) last = endedAt;
    const { raw } = request;
    if (raw.complete || raw.destroyed) close(reply);
    else onceSent(raw, () => close(reply));
  });
  holders.set("open requests", () => open > 0);
  return {
    newestOn: (connection) => newest.get(connection),
    idleFor: () => performance.now() - last,
    async heldBy() {
      for (const [name, holds] of holders) if (await holds()) return name;
      return undefined;
    },
    hold: (name, holds) => void holders.set(name, holds),
  };
}

/** At once where it is closed: an answer that is out, as it may be of a request that has not come whole, or a request that has. */
export function onceClosed(message: IncomingMessage | ServerResponse, then: () => void): void {
  if (message.closed) then();
  else message.once("close", then);
}

/** Node tells nothing of a request that was answered before it had come whole, where its connection ends first. */
function onceSent(raw: IncomingMessage, then: () => void): void {
  const { socket } = raw;
  const over = (): void => {
    raw.off("close", over);
    socket.off("close", over);
    then();
  };
  raw.once("close", over);
  socket.once("close", over);
}
