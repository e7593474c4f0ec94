// Connections on the wire, and the objects that one offers.
import { type Static, Type } from "typebox";
import { environments } from "../protocol.ts";
import { connectionStates } from "../states.ts";
import { listQuery } from "./list.ts";
import { Nullable, Timestamp } from "./times.ts";

const statuses = Object.keys(connectionStates) as (keyof typeof connectionStates)[];

export const ConnectionId = Type.String({
  minLength: 1,
  maxLength: 100,
  description: "A connection's id.",
  examples: ["conn_01kaj3m5t2w8e9x7c6v5b4n3m2"],
});

/** Names of members that are the caller's own: whatever they hold, line ends too, what stands behind them is looked at. */
export const memberName = (longest: number) => Type.String({ pattern: `^[\\s\\S]{1,${longest}}$` });

export const Metadata = Type.Record(
  memberName(60),
  Type.Union([Type.String({ maxLength: 1000 }), Type.Number(), Type.Boolean()]),
  {
    additionalProperties: false,
    maxProperties: 50,
    description:
      "Your own values; `simulate: run_failed` makes sandbox runs fail. Integers that no double is are kept as text.",
    examples: [{ team: "crm" }],
  },
);
/** As a patch: a null removes the key. */
export const MetadataPatch = Type.Record(
  memberName(60),
  Type.Union([Type.String({ maxLength: 1000 }), Type.Number(), Type.Boolean(), Type.Null()]),
  {
    additionalProperties: false,
    maxProperties: 50,
    description: "Merged by key; null removes one.",
    examples: [{ team: null }],
  },
);

const Secret = (description: string) =>
  Type.Record(memberName(200), Type.Unknown(), { additionalProperties: false, maxProperties: 200, description });

const HealthState = Type.Object(
  {
    status: Type.Enum(["healthy", "degraded", "unhealthy", "unknown"]),
    checked_at: Nullable(Timestamp("When it was last tested.")),
    latency_ms: Nullable(Type.Number({ description: "How long the test took." })),
    message: Nullable(Type.String({ description: "What is wrong, and what to do." })),
  },
  { description: "What the last test found." },
);

export const Connection = Type.Object(
  {
    id: ConnectionId,
    object: Type.Literal("connection"),
    provider: Type.String({ description: "The connector's id.", examples: ["salesforce"] }),
    name: Type.String({ examples: ["Sales, Europe"] }),
    environment: Type.Enum([...environments]),
    status: Type.Enum(statuses),
    health: HealthState,
    created_at: Timestamp("When it was made."),
    updated_at: Timestamp("When it last changed."),
    last_synced_at: Nullable(Timestamp("When a run over it last completed.")),
    metadata: Metadata,
  },
  { $id: "Connection", description: "A system that data is moved from or to." },
);
export type Connection = Static<typeof Connection>;

const Name = Type.String({ minLength: 1, maxLength: 200, description: "For people; by default the provider's id." });

export const CreateConnection = Type.Object(
  {
    provider: Type.String({
      minLength: 1,
      maxLength: 100,
      description: "A connector's id: see /v1/connectors.",
      examples: ["salesforce"],
    }),
    name: Type.Optional(Name),
    config: Type.Optional(Secret("What the connector's config_schema asks for. Stored sealed, never shown again.")),
    credentials: Type.Optional(Secret("Passwords, keys and tokens. Stored sealed, never shown again.")),
    metadata: Type.Optional(Metadata),
  },
  {
    additionalProperties: false,
    examples: [{ provider: "salesforce", name: "Sales, Europe", config: { region: "eu" } }],
  },
);
export type CreateConnection = Static<typeof CreateConnection>;

export const PatchConnection = Type.Object(
  {
    name: Type.Optional(Nullable(Name)),
    config: Type.Optional(Nullable(Secret("Merged into what is there; null clears it."))),
    credentials: Type.Optional(Nullable(Secret("Merged into what is there; null clears them."))),
    metadata: Type.Optional(Nullable(MetadataPatch)),
  },
  {
    additionalProperties: false,
    description: "JSON Merge Patch (RFC 7396).",
    examples: [{ name: "Sales", metadata: { team: "crm" } }],
  },
);
export type PatchConnection = Static<typeof PatchConnection>;

export const ConnectionsQuery = listQuery({
  provider: Type.Optional(Type.String({ description: "Only this connector's." })),
  status: Type.Optional(Type.Enum(statuses, { description: "Only those in this status." })),
});

/** As of every list, but without a limit everything is answered: a connection's objects are found in one go. */
export const ObjectsQuery = listQuery({
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, description: "How many at most; by default all.", examples: [20] }),
  ),
});

export const DataObject = Type.Object(
  {
    name: Type.String({ examples: ["Account"] }),
    schema: Type.Record(Type.String(), Type.Unknown(), { description: "JSON Schema of one record." }),
    primary_key: Type.Array(Type.String()),
    cursor_candidates: Type.Array(Type.String(), { description: "Fields that an incremental sync can follow." }),
    records: Nullable(Type.Integer({ description: "An estimate; null where unknown." })),
  },
  { $id: "DataObject", description: "A table, view, file or stream that a connection offers." },
);
export type DataObject = Static<typeof DataObject>;
