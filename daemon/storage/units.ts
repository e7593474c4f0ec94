// Every unit of work that storage offers, by noun. A new noun takes three steps:
//
// 1. tables/<noun>.ts: an interface of its tables; add it to `Database` in schema.ts.
// 2. migrations/NNN-<noun>.ts: makes the tables, portable over SQLite and Postgres; add it to migrations/index.ts.
// 3. repositories/<noun>.ts: exported async functions `(db: Db, args) => result`; add the module to `repositories` below.
//    Callers then have `storage.units.<noun>.<function>(args)`.
//
// A unit is all or nothing and durable once it has answered. It runs in the storage thread and holds the writer: SQL and plain
// computation only, no timers, no I/O. It may be run again from its start (a serialization conflict, a neighbour that met a full
// disk), so it keeps no state outside the database. Arguments and results are plain data. What both dialects understand: text
// for ids, times (RFC 3339) and JSON; `bigint` for integers (read as number up to 2^53, as bigint beyond); 0 and 1 for booleans;
// RETURNING, ON CONFLICT and partial indexes; no FOR UPDATE (units are serializable), no `->>`. Refusals are MagicErrors.
import * as audit from "./repositories/audit.ts";
import * as budget from "./repositories/budget.ts";
import * as connection from "./repositories/connection.ts";
import * as controller from "./repositories/controller.ts";
import * as credential from "./repositories/credential.ts";
import * as gatewayKey from "./repositories/gateway-key.ts";
import * as gatewayLimit from "./repositories/gateway-limit.ts";
import * as gatewaySignature from "./repositories/gateway-signature.ts";
import * as idempotency from "./repositories/idempotency.ts";
import * as job from "./repositories/job.ts";
import * as ledger from "./repositories/ledger.ts";
import * as oauth from "./repositories/oauth.ts";
import * as rateWindow from "./repositories/rate-window.ts";
import * as run from "./repositories/run.ts";
import * as sealed from "./repositories/sealed.ts";
import * as setting from "./repositories/setting.ts";
import * as signingKey from "./repositories/signing-key.ts";
import * as sync from "./repositories/sync.ts";
import * as trace from "./repositories/trace.ts";
import * as webhook from "./repositories/webhook.ts";

export const repositories = {
  audit,
  budget,
  controller,
  credential,
  gatewayKey,
  gatewayLimit,
  gatewaySignature,
  idempotency,
  job,
  ledger,
  rateWindow,
  sealed,
  setting,
  signingKey,
  trace,
  connection,
  run,
  sync,
  webhook,
  oauth,
};

export type Repositories = typeof repositories;
