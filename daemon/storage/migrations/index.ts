// Every migration by name, one file per noun. Names sort; a later change to a noun is a new file. Never edit one that was released.
import type { Kysely } from "kysely";
import type { MigrationName } from "#contract/migrations.ts";
import type { DialectName } from "../dialect.ts";
import * as setting from "./001-setting.ts";
import * as credential from "./010-credential.ts";
import * as signingKey from "./011-signing-key.ts";
import * as audit from "./012-audit.ts";
import * as idempotency from "./013-idempotency.ts";
import * as rateWindow from "./014-rate-window.ts";
import * as gateway from "./020-gateway.ts";
import * as trace from "./021-trace.ts";
import * as gatewaySignature from "./022-gateway-signature.ts";
import * as gatewayReplicas from "./023-gateway-replicas.ts";
import * as gatewayUsage from "./024-gateway-usage.ts";
import * as gatewayLimit from "./025-gateway-limit.ts";
import * as gatewayGate from "./026-gateway-gate.ts";
import * as gatewayBatch from "./027-gateway-batch.ts";
import * as job from "./030-job.ts";
import * as connection from "./031-connection.ts";
import * as sync from "./032-sync.ts";
import * as webhook from "./033-webhook.ts";
import * as oauth from "./034-oauth.ts";
import * as deliveryQueue from "./035-delivery-queue.ts";
import * as syncState from "./036-sync-state.ts";
import * as runListing from "./037-run-listing.ts";
import * as controller from "./040-controller.ts";
import * as controllerListing from "./041-controller-listing.ts";

export interface MigrationStep {
  up(db: Kysely<unknown>, dialect: DialectName): Promise<void>;
}

export const migrations: Readonly<Record<MigrationName, MigrationStep>> = {
  "001-setting": setting,
  "010-credential": credential,
  "011-signing-key": signingKey,
  "012-audit": audit,
  "013-idempotency": idempotency,
  "014-rate-window": rateWindow,
  "030-job": job,
  "020-gateway": gateway,
  "021-trace": trace,
  "022-gateway-signature": gatewaySignature,
  "023-gateway-replicas": gatewayReplicas,
  "024-gateway-usage": gatewayUsage,
  "025-gateway-limit": gatewayLimit,
  "026-gateway-gate": gatewayGate,
  "027-gateway-batch": gatewayBatch,
  "031-connection": connection,
  "032-sync": sync,
  "040-controller": controller,
  "033-webhook": webhook,
  "034-oauth": oauth,
  "035-delivery-queue": deliveryQueue,
  "041-controller-listing": controllerListing,
  "036-sync-state": syncState,
  "037-run-listing": runListing,
};
