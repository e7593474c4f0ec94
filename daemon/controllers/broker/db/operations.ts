// db:query: one statement, or a transaction that lives no longer than its invocation.
import { isMagicError, MagicError } from "#contract/errors.ts";
import { onAbort } from "#shared/abort.ts";
import { listOf, textOf } from "../arguments.ts";
import type { Session as BrokerSession, Operation } from "../session.ts";
import type { Databases } from "./databases.ts";
import type { Driver, Mode, Session } from "./driver.ts";
import { refusedAsWrite } from "./meter.ts";
import { checkStatement } from "./statement.ts";

const MAX_TRANSACTIONS = 4;

const OVER = "the transaction is over";

const INSIDE_MS = 2_000;
const NONE_INSIDE =
  "inside of a transaction no other session of the database became free: ask by the transaction's own query";

interface Transaction {
  readonly session: Session;
  readonly database: string;
  /** The statements so far: one after another, so that each answer is counted by itself. */
  last: Promise<unknown>;
  over: boolean;
}

/** Those that an invocation has open, by the number that its handler knows. */
interface Transactions {
  readonly held: Map<number, Transaction>;
  /** They wait for their session, and count from the beginning. */
  opening: number;
  /** Never given twice: what is left of one that is over must not reach the next. */
  lastNumber: number;
}

/** `insideMs`: how long what is asked for inside of a transaction waits for another session. */
export function databaseOperations(
  databases: Databases,
  insideMs = INSIDE_MS,
): readonly (readonly [string, Operation])[] {
  const known = new WeakMap<BrokerSession, Transactions>();

  function transactionsOf(broker: BrokerSession): Transactions {
    let all = known.get(broker);
    if (!all) {
      const held: Transactions["held"] = new Map();
      all = { held, opening: 0, lastNumber: 0 };
      known.set(broker, all);
      // A handler may forget its transaction, and may go on past its deadline or without its caller: nobody waits for what it would commit.
      const end = (): void => {
        for (const { session } of held.values()) session.destroy();
        held.clear();
      };
      broker.caller.signal.addEventListener("abort", end, { once: true });
    }
    return all;
  }

  const begin: Operation = async (broker, args) => {
    const name = textOf(args, "database", 200);
    const driver = await driverFor(broker, name);
    const all = transactionsOf(broker);
    if (all.held.size + all.opening >= MAX_TRANSACTIONS)
      throw new MagicError("limit_exceeded", `more than ${MAX_TRANSACTIONS} transactions are open in one invocation`);
    all.opening++;
    const session = await sessionFor(broker, driver, args, "many").finally(() => all.opening--);
    if (broker.caller.signal.aborted) {
      session.destroy();
      throw new MagicError("timeout", "the invocation has ended");
    }
    const number = ++all.lastNumber;
    all.held.set(number, { session, database: name, last: Promise.resolve(), over: false });
    return { value: number };
  };

  const query: Operation = async (broker, args, _body, given) => {
    // The cell lives on after a caller who left; the statement, and the session that others wait for, do not.
    const signal = AbortSignal.any([given, broker.caller.signal]);
    const name = textOf(args, "database", 200);
    const sql = textOf(args, "sql");
    const params = listOf(args, "params", 10_000);
    checkStatement(sql);
    broker.usage.db_queries++;
    const held = known.get(broker)?.held.get(args["tx"] as number);
    if (args["tx"] !== undefined) {
      if (held?.database !== name) throw new MagicError("invalid_request", OVER);
      const answer = held.last.then(() => {
        if (held.over) throw new MagicError("invalid_request", OVER);
        return within(held.session, signal, () => held.session.query(sql, params));
      });
      held.last = answer.catch(() => {});
      return { value: await declared(broker, name, answer) };
    }
    const driver = await driverFor(broker, name);
    const session = await sessionFor(broker, driver, args);
    try {
      const answer = await declared(
        broker,
        name,
        within(session, signal, () => session.query(sql, params)),
      );
      if (modeOf(broker, name) === "write") await session.commit();
      return { value: answer };
    } finally {
      await session.release();
    }
  };

  const finish =
    (commit: boolean): Operation =>
    async (broker, args) => {
      const number = args["tx"] as number;
      const all = known.get(broker)?.held;
      const held = all?.get(number);
      all?.delete(number);
      if (!held) {
        if (!commit) return {};
        throw new MagicError("invalid_request", OVER);
      }
      try {
        if (commit) {
          await held.last;
          await held.session.commit();
        }
      } finally {
        held.over = true;
        await held.session.release();
      }
      return {};
    };

  /** What is asked for inside of a transaction may wait for the session that this one holds, or others that wait likewise. */
  async function sessionFor(
    broker: BrokerSession,
    driver: Driver,
    { inside }: Record<string, unknown>,
    many?: "many",
  ): Promise<Session> {
    const { signal, controller } = broker.caller;
    if (!known.get(broker)?.held.has(inside as number)) return await driver.begin(signal, many, signal, controller);
    const free = AbortSignal.any([signal, AbortSignal.timeout(insideMs)]);
    return await driver.begin(signal, many, free, controller).catch((error: unknown) => {
      const late = isMagicError(error) && error.code === "timeout" && !signal.aborted;
      throw late ? new MagicError("invalid_request", NONE_INSIDE) : error;
    });
  }

  async function driverFor(broker: BrokerSession, name: string): Promise<Driver> {
    const mode = modeOf(broker, name);
    const target = await broker.ports.databases?.get(name);
    if (!target)
      throw new MagicError(
        "not_found",
        `magic.yaml has no database ${name}, or its variable is not set where the daemon was started; add under databases: ${name}: { url: "\${env:DATABASE_URL}", mode: ${mode} }`,
      );
    if (mode === "write" && target.mode !== "write")
      throw new MagicError(
        "capability_denied",
        `magic.yaml allows only reading of the database ${name}; set its mode to write`,
      );
    return await databases.driver(name, target, mode);
  }

  function modeOf(broker: BrokerSession, name: string): Mode {
    broker.grants.need({ capability: "db:query", name });
    return broker.grants.mode(name);
  }

  return [
    ["db.begin", begin],
    ["db.query", query],
    ["db.commit", finish(true)],
    ["db.rollback", finish(false)],
  ];
}

/** What the database refused because the contract does not declare it is refused as such, with the line to add. */
async function declared<T>(broker: BrokerSession, name: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (refusedAsWrite(error)) broker.grants.need({ capability: "db:query", name, mode: "write" });
    throw error;
  }
}

/** A statement that outlives its invocation is ended with its session. */
async function within<T>(session: Session, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const forget = onAbort(signal, () => session.destroy());
  try {
    return await work();
  } finally {
    forget();
  }
}
