// The types of every table, assembled from tables/<noun>.ts. Kysely sees the database through this interface.
import type { Kysely } from "kysely";
import type { AuditTables } from "./tables/audit.ts";
import type { ConnectionTables } from "./tables/connection.ts";
import type { ControllerTables } from "./tables/controller.ts";
import type { CredentialTables } from "./tables/credential.ts";
import type { GatewayTables } from "./tables/gateway.ts";
import type { IdempotencyTables } from "./tables/idempotency.ts";
import type { JobTables } from "./tables/job.ts";
import type { OAuthTables } from "./tables/oauth.ts";
import type { RateWindowTables } from "./tables/rate-window.ts";
import type { SettingTables } from "./tables/setting.ts";
import type { SigningKeyTables } from "./tables/signing-key.ts";
import type { SyncTables } from "./tables/sync.ts";
import type { TraceTables } from "./tables/trace.ts";
import type { WebhookTables } from "./tables/webhook.ts";

export interface Database
  extends AuditTables,
    ControllerTables,
    CredentialTables,
    GatewayTables,
    IdempotencyTables,
    RateWindowTables,
    SettingTables,
    SigningKeyTables,
    JobTables,
    TraceTables,
    ConnectionTables,
    SyncTables,
    WebhookTables,
    OAuthTables {}

/** What a unit of work gets: the database, inside its own savepoint (SQLite) or transaction (Postgres). */
export type Db = Kysely<Database>;
