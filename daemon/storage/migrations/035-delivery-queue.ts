// Deliveries wait in the queue of their webhook, where each had a job of its own before.
import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  const columns = ["webhook_id", "status", "next_attempt_at"];
  await db.schema.createIndex("delivery_due").on("delivery").columns(columns).execute();
  await sql`delete from job where queue = 'webhook-delivery'`.execute(db);
  await sql`
    insert into job (id, queue, key, payload, run_at, attempts, version)
    select distinct 'job_' || substr(webhook_id, 4), 'webhook', webhook_id, '{"webhook":"' || webhook_id || '"}', 0, 0, 0
    from delivery where status = 'pending'`.execute(db);
}
