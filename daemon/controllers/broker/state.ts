// secrets:read, kv:read, kv:write, sync:trigger, controller:invoke: the small operations.
import { MagicError } from "#contract/errors.ts";
import { kvLimits } from "#contract/runtime-limits.ts";
import { rfc3339 } from "#shared/clock.ts";
import { isLargeOutput } from "../serving/large-output.ts";
import { textOf } from "./arguments.ts";
import type { Operation, Session } from "./session.ts";

export const getSecret: Operation = async (session, args) => {
  const name = textOf(args, "name", 200);
  session.grants.need({ capability: "secrets:read", name });
  const value = await session.ports.secrets?.get(name);
  if (value === null || value === undefined)
    throw new MagicError(
      "not_found",
      `magic.yaml has no secret ${name}, or its variable is not set where the daemon was started; add under secrets: ${name}: "\${env:${name}}"`,
    );
  session.learn(value);
  return { value };
};

export const getKey: Operation = async (session, args) => {
  session.grants.need({ capability: "kv:read" });
  return { value: await kv(session).get(kvScope(session), keyOf(args)) };
};

export const setKey: Operation = async (session, args) => {
  session.grants.need({ capability: "kv:write" });
  const ttl = args["ttl_s"];
  if (ttl !== undefined && ttl !== null && !(typeof ttl === "number" && ttl > 0 && ttl <= kvLimits.ttlS))
    throw new MagicError("invalid_request", "ttl_s must be a positive number of seconds");
  const expires = typeof ttl === "number" ? rfc3339(Date.now() + ttl * 1000) : null;
  await kv(session).set(kvScope(session), keyOf(args), textOf(args, "value", kvLimits.value), expires);
  return {};
};

export const deleteKey: Operation = async (session, args) => {
  session.grants.need({ capability: "kv:write" });
  await kv(session).delete(kvScope(session), keyOf(args));
  return {};
};

export const triggerSync: Operation = async (session, args, _body, _signal, span) => {
  const sync = textOf(args, "id", 200);
  session.grants.need({ capability: "sync:trigger", name: sync });
  if (!session.ports.syncs) throw new MagicError("not_found", `there is no sync ${sync}`);
  return { value: await session.ports.syncs.trigger({ ...session.caller, span, sync }) };
};

export const invokeController: Operation = async (session, args) => {
  const name = textOf(args, "name", 200);
  session.grants.need({ capability: "controller:invoke", name });
  const output = await session.invoke(name, args["input"]);
  return isLargeOutput(output) ? { json: output.json } : { value: output };
};

/** A database makes one character of all halves of a pair, and PostgreSQL keeps no NUL: two keys would be one, or none. */
function keyOf(args: Record<string, unknown>): string {
  const key = textOf(args, "key", kvLimits.key);
  if (!key.isWellFormed() || key.includes("\0"))
    throw new MagicError("invalid_request", "key must be text that UTF-8 can hold, without NUL");
  return key;
}

function kv(session: Session) {
  if (!session.ports.kv) throw new MagicError("state_unusable", "this daemon has no storage");
  return session.ports.kv;
}

function kvScope({ caller }: Session) {
  return { controller: caller.controller, environment: caller.principal.environment };
}
