// The rest of the daemon as the controller runtime wants it: the gateway, storage, magic.yaml and the egress guard behind its ports.
import type { DatabaseTarget, KvPort, LlmAnswer, LlmCall, LlmPort, Ports, SyncPort } from "./controllers/ports.ts";
import type { Egress } from "./egress/egress.ts";
import type { Gateway, GatewayAnswer } from "./gateway/call.ts";
import type { Project } from "./project.ts";
import type { Storage } from "./storage/storage.ts";

export interface PortSources {
  readonly gateway: Gateway;
  readonly storage: Storage;
  readonly project: Project;
  readonly egress: Egress;
  readonly syncs: SyncPort | null;
  /** A live connection's database. */
  readonly connectedDatabase: (connection: string) => Promise<Omit<DatabaseTarget, "mode">>;
}

export function controllerPorts(sources: PortSources): Ports {
  const { project, egress } = sources;
  return {
    llm: llmPort(sources.gateway),
    egress,
    databases: {
      get(name) {
        const { url, connection, mode = "read" } = project.current().databases?.[name] ?? {};
        if (url) return { url, mode };
        return connection === undefined
          ? null
          : sources.connectedDatabase(connection).then((database) => ({ ...database, mode }));
      },
    },
    // magic.yaml is watched: a rotated secret is seen without a restart.
    secrets: { get: (name) => project.current().secrets?.[name] || null },
    kv: kvPort(sources.storage),
    syncs: sources.syncs,
  };
}

function llmPort(gateway: Gateway): LlmPort {
  return {
    async chat(call) {
      const answer = await gateway.complete({
        operation: "chat",
        principal: call.principal,
        requestId: call.requestId,
        body: call.body,
        raw: null,
        headers: {},
        idempotencyKey: null,
        controller: { name: call.controller, models: call.models ?? ["*"], usdPerDay: call.usdPerDay },
        span: call.span,
        signal: call.signal,
        startedAt: performance.now(),
      });
      return answer.stream ? { ...head(answer), chunks: chunksOf(answer, call) } : document(answer);
    },
  };
}

function head({ status, headers }: GatewayAnswer) {
  return { status, headers };
}

function document(answer: Exclude<GatewayAnswer, { stream: object }>): LlmAnswer {
  return { ...head(answer), body: JSON.parse(String(answer.body)) as unknown };
}

/**
 * The documents of a stream's events; what the reader has not taken yet holds the stream back. It begins at once, read or not: the gateway
 * gives the call's place and its budget back at the stream's end, and somebody who has left by now reads nothing.
 */
function chunksOf(
  answer: Extract<GatewayAnswer, { stream: object }>,
  call: LlmCall,
): AsyncGenerator<Record<string, unknown>> {
  const waiting: string[] = [];
  let ended = false;
  let broken: unknown;
  let wake = (): void => {};
  let taken = (): void => {};
  const decoder = new TextDecoder();
  void answer.stream
    .pipe({
      write(frame) {
        waiting.push(typeof frame === "string" ? frame : decoder.decode(frame));
        wake();
        return waiting.length < 64;
      },
      drained: () =>
        new Promise((resolve) => {
          taken = resolve;
        }),
    })
    .catch((error: unknown) => {
      broken = error;
    })
    .finally(() => {
      ended = true;
      wake();
    });

  async function* read(): AsyncGenerator<Record<string, unknown>> {
    try {
      while (!call.signal.aborted) {
        const frame = waiting.shift();
        if (frame !== undefined) {
          if (waiting.length < 32) taken();
          yield* documentsOf(frame);
        } else if (broken !== undefined) throw broken;
        else if (ended) break;
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      waiting.length = 0;
      taken();
    }
  }
  return read();
}

/** Server-sent events carry one JSON document in each `data:` line; `[DONE]` is none. */
function* documentsOf(frame: string): Generator<Record<string, unknown>> {
  for (const line of frame.split("\n")) {
    if (!line.startsWith("data:")) continue;
    const text = line.slice(5).trim();
    if (text !== "" && text !== "[DONE]") yield JSON.parse(text) as Record<string, unknown>;
  }
}

function kvPort({ units }: Storage): KvPort {
  const now = (): string => new Date().toISOString();
  return {
    get: (scope, key) => units.controller.getKey({ ...scope, key, now: now() }),
    set: (scope, key, value, expires_at) => units.controller.setKey({ ...scope, key, value, expires_at, now: now() }),
    delete: (scope, key) => units.controller.deleteKey({ ...scope, key }),
  };
}
