// How a run's rows are written: what tells them apart, what the table's columns need, and by which way they go in.
import { DELETED_AT, type OpenRequest, type WritePlan, type WriteResult } from "../../engine/destination.ts";
import { leftNull } from "../../engine/evolution.ts";
import { formatObjectName } from "../../engine/name.ts";
import { createTakenRows } from "../../engine/taken.ts";
import type { Column } from "../../engine/types.ts";
import type { MysqlColumn, MysqlTable } from "./catalog.ts";
import type { MysqlLink } from "./connect.ts";
import { asTheyCome, holdingTaken, type Intake, manyAtATime, type Put, parentsFirst, triedAgain } from "./intake.ts";
import { hasUniqueKey } from "./keys.ts";
import { hasOwnColumns, makeStage, upsertStaged } from "./merge-stage.ts";
import { createOrphans } from "./orphans.ts";
import { type Referring, referringToItself } from "./referring.ts";
import { type Form, formOf, type InsertTarget, insertRows } from "./write-rows.ts";

export interface Writing {
  readonly plan: WritePlan;
  readonly target: InsertTarget;
  readonly intake: Intake;
  /** The table, where its rows refer to each other. */
  readonly inward: MysqlTable | null;
  /** A full refresh by a key that neither the source nor the table vouches for. */
  readonly unsure: boolean;
}

interface Wanted {
  readonly link: MysqlLink;
  readonly request: OpenRequest;
  readonly database: string;
  readonly existing: MysqlTable | null;
  /** Quoted. */
  readonly table: string;
  readonly plan: WritePlan;
  /** The columns that have been made wider. */
  readonly wider: readonly Column[];
  /** Told of the bytes that are sent. */
  count(bytes: number): void;
}

/** For a table that is made, or has all columns of the plan. */
export async function planWriting(wanted: Wanted): Promise<Writing> {
  const { link, request, database, existing, table, plan, wider } = wanted;
  const columns = existing?.columns ?? [];
  const [first] = plan.primaryKey;
  const soft = plan.deletes === "soft";
  const keyed = first !== undefined && (plan.kind === "upsert" || soft);
  const asked = first !== undefined && plan.kind === "replace" && !plan.keyCertain;
  const unique = (keyed || asked) && (await hasUniqueKey(link, database, request.table.name, plan.primaryKey));
  const target: InsertTarget = {
    link,
    table,
    plan,
    upsert: keyed ? (unique ? "keys" : "delete") : null,
    nullableKey: columns.find(({ name }) => name === first)?.nullable === true,
    forms: formsOf(columns.filter(({ name }) => wider.every((column) => column.name !== name))),
    left: leftNull(plan, columns),
    marked: soft || columns.some(({ name }) => name === DELETED_AT),
  };
  const inward = existing ? await referringToItself(link, existing) : [];
  return {
    plan,
    target,
    intake: await intakeOf(wanted, target, inward),
    inward: inward.length > 0 ? existing : null,
    unsure: asked && !unique,
  };
}

async function intakeOf(
  { link, request, existing, table, plan, count }: Wanted,
  target: InsertTarget,
  inward: readonly Referring[],
): Promise<Intake> {
  const counted =
    <Written extends WriteResult & { bytes: number }>(write: (...rows: Parameters<Put>) => Promise<Written>) =>
    async (...rows: Parameters<Put>) => {
      const written = await write(...rows);
      count(written.bytes);
      return written;
    };
  if (target.upsert === "delete" && plan.kind === "upsert" && existing && hasOwnColumns(existing, plan)) {
    const stage = await makeStage(link, existing, table, plan);
    const merge = counted((...rows) => {
      request.waiting(`the merge into ${formatObjectName(request.table)}`);
      return upsertStaged(target, stage, ...rows);
    });
    return manyAtATime(async (...rows) => (await merge(...rows)).rejects);
  }
  const write = counted((...rows) => insertRows(target, ...rows));
  const held = createTakenRows(plan);
  const put = holdingTaken(write, held, plan);
  const intake = inward.length > 0 ? parentsFirst(put, createOrphans(target, inward)) : asTheyCome(put);
  return triedAgain(intake, async (...rows) => (await write(...rows)).rejects, held);
}

function formsOf(columns: readonly MysqlColumn[]): ReadonlyMap<string, Form> {
  return new Map(
    columns.flatMap(({ name, declared, form = formOf(declared) }) => (form ? [[name, form] as const] : [])),
  );
}
