// Syncs and runs on the wire.
import { type Static, Type } from "typebox";
import { environments } from "../protocol.ts";
import { runStates, syncStates } from "../states.ts";
import { badRecordModes, deleteModes, syncModes } from "../sync.ts";
import { ConnectionId, Metadata, MetadataPatch, memberName } from "./connections.ts";
import { listQuery } from "./list.ts";
import { Nullable, Timestamp } from "./times.ts";

const runStatuses = Object.keys(runStates) as (keyof typeof runStates)[];
const syncStatuses = Object.keys(syncStates) as (keyof typeof syncStates)[];
const Count = (description: string) => Type.Integer({ minimum: 0, description });
const FieldName = Type.String({ minLength: 1, maxLength: 500 });

const Problem = Type.Object({ code: Type.String(), message: Type.String() });
const Throughput = Type.Object({ records_per_s: Type.Number(), bytes_per_s: Type.Number() });

export const Run = Type.Object(
  {
    id: Type.String({ examples: ["run_01kaj3m5t2w8e9x7c6v5b4n3m2"] }),
    object: Type.Literal("run"),
    sync: Type.String({ description: "The sync's id." }),
    environment: Type.Enum([...environments]),
    status: Type.Enum(runStatuses),
    trigger: Type.Enum(["manual", "schedule", "realtime"]),
    started_at: Nullable(Timestamp("When a worker took it.")),
    finished_at: Nullable(Timestamp("When it ended.")),
    records_read: Count("At the source."),
    records_synced: Count("Written to the destination."),
    records_rejected: Count("Put into quarantine: see /v1/runs/:id/rejects."),
    bytes: Count("Moved."),
    throughput: Throughput,
    waiting_for: Nullable(Type.String({ description: "What a run under way waits for." })),
    errors: Type.Array(Problem),
    error: Nullable(Problem),
    warnings: Type.Array(Problem, {
      description: "What a completed run could not do or know, e.g. `row_level_security`.",
    }),
    proof: Nullable(
      Type.Object({
        source_count: Nullable(Type.Integer()),
        destination_count: Nullable(Type.Integer()),
        checksum: Nullable(Type.String({ description: "Independent of order, equal on both sides." })),
      }),
    ),
  },
  { $id: "Run", description: "One execution of a sync." },
);
export type Run = Static<typeof Run>;

const Source = Type.Object(
  { connection: ConnectionId, object: Type.String({ minLength: 1, maxLength: 1000, examples: ["Account"] }) },
  { additionalProperties: false },
);
const Destination = Type.Object(
  { connection: ConnectionId, table: Type.String({ minLength: 1, maxLength: 1000, examples: ["public.accounts"] }) },
  { additionalProperties: false },
);
const Cron = Type.String({ minLength: 1, maxLength: 200 });
const Timezone = Type.String({ maxLength: 100 });
const Schedule = Type.Union(
  [Cron, Type.Object({ cron: Cron, timezone: Type.Optional(Timezone) }, { additionalProperties: false })],
  { description: "`manual` (the default), `realtime`, or a cron expression.", examples: ["0 * * * *"] },
);
const SchedulePatch = Type.Union(
  [
    Cron,
    Type.Object(
      { cron: Type.Optional(Cron), timezone: Type.Optional(Nullable(Timezone)) },
      { additionalProperties: false },
    ),
  ],
  { description: "Members of an object are merged with what there is.", examples: ["0 * * * *"] },
);

const optional = {
  name: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 200 }))),
  schedule: Type.Optional(Schedule),
  timezone: Type.Optional(
    Nullable(
      Type.String({
        maxLength: 100,
        description: "IANA name, for a cron schedule; UTC without it.",
        examples: ["Europe/Berlin"],
      }),
    ),
  ),
  mode: Type.Optional(Type.Enum([...syncModes])),
  primary_key: Type.Optional(Nullable(Type.Array(FieldName, { minItems: 1, maxItems: 32, uniqueItems: true }))),
  cursor_field: Type.Optional(Nullable(FieldName)),
  columns: Type.Optional(Nullable(Type.Array(FieldName, { minItems: 1, maxItems: 2000, uniqueItems: true }))),
  mapping: Type.Optional(
    Nullable(
      Type.Record(memberName(500), FieldName, {
        additionalProperties: false,
        maxProperties: 2000,
        description: "Source field to destination column.",
      }),
    ),
  ),
  on_bad_record: Type.Optional(Type.Enum([...badRecordModes])),
  deletes: Type.Optional(Nullable(Type.Enum([...deleteModes]))),
  stall_timeout_s: Type.Optional(
    Nullable(
      Type.Number({ exclusiveMinimum: 0, maximum: 86_400, description: "A run without progress for so long fails." }),
    ),
  ),
};

export const CreateSync = Type.Object(
  { source: Source, destination: Destination, ...optional, metadata: Type.Optional(Metadata) },
  {
    additionalProperties: false,
    examples: [
      {
        source: { connection: "conn_01kaj3m5t2w8e9x7c6v5b4n3m2", object: "Account" },
        destination: { connection: "conn_01kaj3m5t2w8e9x7c6v5b4n3m3", table: "public.accounts" },
        schedule: "0 * * * *",
        mode: "incremental",
      },
    ],
  },
);
export type CreateSync = Static<typeof CreateSync>;

export const PatchSync = Type.Object(
  {
    ...optional,
    schedule: Type.Optional(Nullable(SchedulePatch)),
    mode: Type.Optional(Nullable(Type.Enum([...syncModes]))),
    mapping: Type.Optional(
      Nullable(
        Type.Record(memberName(500), Nullable(FieldName), {
          additionalProperties: false,
          maxProperties: 2000,
          description: "Merged with what there is; null takes one out.",
        }),
      ),
    ),
    on_bad_record: Type.Optional(Nullable(Type.Enum([...badRecordModes]))),
    metadata: Type.Optional(Nullable(MetadataPatch)),
    status: Type.Optional(Type.Enum(["active", "paused"], { description: "Resume or pause." })),
  },
  { additionalProperties: false, description: "JSON Merge Patch (RFC 7396).", examples: [{ status: "paused" }] },
);
export type PatchSync = Static<typeof PatchSync>;

export const Sync = Type.Object(
  {
    id: Type.String({ examples: ["sync_01kaj3m5t2w8e9x7c6v5b4n3m2"] }),
    object: Type.Literal("sync"),
    environment: Type.Enum([...environments]),
    name: Nullable(Type.String()),
    source: Source,
    destination: Destination,
    schedule: Schedule,
    timezone: Nullable(Type.String()),
    mode: Type.Enum([...syncModes]),
    primary_key: Nullable(Type.Array(Type.String())),
    cursor_field: Nullable(Type.String()),
    columns: Nullable(Type.Array(Type.String())),
    mapping: Nullable(Type.Record(Type.String(), Type.String())),
    on_bad_record: Type.Enum([...badRecordModes]),
    deletes: Nullable(Type.Enum([...deleteModes])),
    stall_timeout_s: Nullable(Type.Number()),
    status: Type.Enum(syncStatuses),
    records_synced: Count("Over all runs."),
    last_run: Nullable(Type.Object(Run.properties)),
    next_run_at: Nullable(Timestamp("By the schedule.")),
    throughput: Throughput,
    errors: Type.Array(Problem, { description: "Of the last run." }),
    metadata: Metadata,
    created_at: Timestamp("When it was made."),
    updated_at: Timestamp("When it last changed."),
  },
  { $id: "Sync", description: "Moves one object to one table, by schedule or on demand." },
);
export type Sync = Static<typeof Sync>;

export const TriggerSync = Type.Object(
  {
    full_refresh: Type.Optional(Type.Boolean({ description: "Forget the state and read everything." })),
    objects: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 100 })),
  },
  { additionalProperties: false, examples: [{ full_refresh: true }] },
);

export const SyncsQuery = listQuery({
  status: Type.Optional(Type.Enum(syncStatuses, { description: "Only those in this status." })),
  connection: Type.Optional(Type.String({ description: "Only those from or to this connection." })),
});
export const RunsQuery = listQuery({
  status: Type.Optional(Type.Enum(runStatuses, { description: "Only those in this status." })),
});

export const RejectedRecord = Type.Object(
  {
    id: Type.String(),
    key: Type.String({ description: "The record's primary key, or `row N` in reading order." }),
    column: Nullable(Type.String()),
    reason: Type.String(),
  },
  { $id: "RejectedRecord" },
);
