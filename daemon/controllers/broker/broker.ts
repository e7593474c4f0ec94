// The broker: everything a controller can reach, decided by the channel that the call came by. The call's content says what, never who.
import type { ControllerContract } from "#contract/controller.ts";
import { MagicError } from "#contract/errors.ts";
import { fields } from "#contract/json-object.ts";
import { formsOf } from "#shared/redact.ts";
import type { BrokerSession } from "../cell/streams.ts";
import type { Caller, Ports } from "../ports.ts";
import type { Databases } from "./db/databases.ts";
import { databaseOperations } from "./db/operations.ts";
import { grantsOf } from "./grants.ts";
import { httpFetch } from "./http/fetch.ts";
import { chat } from "./llm.ts";
import { remember, striker } from "./redaction.ts";
import type { Operation, Session, Usage } from "./session.ts";
import { deleteKey, getKey, getSecret, invokeController, setKey, triggerSync } from "./state.ts";

const common: readonly (readonly [string, Operation])[] = [
  ["llm.chat", chat],
  ["http.fetch", httpFetch],
  ["secrets.get", getSecret],
  ["kv.get", getKey],
  ["kv.set", setKey],
  ["kv.delete", deleteKey],
  ["syncs.trigger", triggerSync],
  ["controllers.invoke", invokeController],
];

/** What a cell may ask for, by name. */
export type Operations = ReadonlyMap<string, Operation>;

export function brokerOperations(databases: Databases, insideMs?: number): Operations {
  return new Map([...common, ...databaseOperations(databases, insideMs)]);
}

export interface OpenedSession extends BrokerSession {
  readonly usage: Usage;
  readonly secrets: Set<string>;
}

export interface Broker {
  /** What strikes out every secret that the controller's invocations have learned: for lines that belong to none of them. */
  striker(): (text: string) => string;
  open(caller: Caller, invoke: Session["invoke"]): OpenedSession;
}

export interface BrokerServices {
  readonly operations: Operations;
  readonly ports: Ports;
  /** Seconds of each call, by operation. */
  observe(operation: string, seconds: number, failed: boolean): void;
}

export function createBroker(contract: ControllerContract, services: BrokerServices): Broker {
  const grants = grantsOf(contract);
  const known = new Set<string>();
  return {
    striker: () => striker(known),
    open(caller, invoke) {
      const session: Session = {
        caller,
        grants,
        ports: services.ports,
        usage: newUsage(),
        secrets: caller.secrets ?? new Set(),
        learn(secret) {
          for (const form of formsOf(secret)) {
            session.secrets.add(form);
            remember(known, form);
          }
        },
        invoke,
      };
      return {
        usage: session.usage,
        secrets: session.secrets,
        async call(op, args, body, signal) {
          const operation = services.operations.get(op);
          if (!operation) throw new MagicError("invalid_request", `there is no operation ${String(op).slice(0, 50)}`);
          // A handler may go on past its deadline, or without its caller, who was told that it failed: nothing that it does then counts.
          if (caller.signal.aborted) throw new MagicError("timeout", "the invocation has ended");
          const began = performance.now();
          const span = caller.span.child(`broker ${op}`);
          try {
            const answer = await operation(session, fields(args), body, signal, span);
            span.end("ok");
            services.observe(op, (performance.now() - began) / 1000, false);
            return answer;
          } catch (error) {
            span.end("error", { error: (error as { code?: string }).code ?? "failed" });
            services.observe(op, (performance.now() - began) / 1000, true);
            throw error;
          }
        },
      };
    },
  };
}

function newUsage(): Usage {
  return {
    llm_calls: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    cost_usd: 0,
    http_requests: 0,
    http_bytes: 0,
    db_queries: 0,
  };
}
