// The steps that bring a database to this version's schema (daemon/storage/migrations): by their names the command line knows a database
// that a newer version made.
export const migrationNames = [
  "001-setting",
  "010-credential",
  "011-signing-key",
  "012-audit",
  "013-idempotency",
  "014-rate-window",
  "030-job",
  "020-gateway",
  "021-trace",
  "022-gateway-signature",
  "023-gateway-replicas",
  "024-gateway-usage",
  "025-gateway-limit",
  "026-gateway-gate",
  "027-gateway-batch",
  "031-connection",
  "032-sync",
  "040-controller",
  "033-webhook",
  "034-oauth",
  "035-delivery-queue",
  "041-controller-listing",
  "036-sync-state",
  "037-run-listing",
] as const;
export type MigrationName = (typeof migrationNames)[number];

/** Where a database keeps the names of the steps that it has taken. */
export const MIGRATION_TABLE = "magic_migration";
