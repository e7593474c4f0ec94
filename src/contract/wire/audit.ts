// The audit log's documents.
import { type Static, Type } from "typebox";
import { outcomes } from "../audit.ts";
import { principalTypes } from "../identity.ts";
import { environments } from "../protocol.ts";
import { listQuery } from "./list.ts";
import { Nullable, Timestamp } from "./times.ts";

export const AuditEntry = Type.Object(
  {
    id: Type.String({ examples: ["aud_01kabc"] }),
    object: Type.Literal("audit_entry"),
    timestamp: Timestamp("When the call was answered."),
    identity: Type.Object({
      type: Type.Enum([...principalTypes]),
      id: Nullable(Type.String()),
    }),
    action: Type.String({ examples: ["connections.create"] }),
    resource: Nullable(Type.String()),
    outcome: Type.Enum([...outcomes], { description: "refused: 401, 403 and 429. failed: every other error." }),
    status: Type.Integer(),
    request_id: Type.String(),
    environment: Type.Enum([...environments]),
    sequence: Type.Integer({ description: "Its place in the chain." }),
    mac: Type.String({ description: "HMAC-SHA-256 over the entry and the MAC before it." }),
  },
  { description: "One API call, refused ones too." },
);
export type AuditEntry = Static<typeof AuditEntry>;

export const AuditQuery = listQuery({
  request_id: Type.Optional(Type.String({ maxLength: 128 })),
  outcome: Type.Optional(Type.Enum([...outcomes])),
  identity: Type.Optional(Type.String({ maxLength: 200, description: "An id such as `key_...`, or a type." })),
  action: Type.Optional(Type.String({ maxLength: 200 })),
  since: Type.Optional(Timestamp("Entries from here on.")),
  until: Type.Optional(Timestamp("Entries up to here.")),
});
export type AuditQuery = Static<typeof AuditQuery>;

export const AuditVerification = Type.Object(
  {
    valid: Type.Boolean(),
    entries: Type.Integer(),
    unproven: Type.Integer({
      description: "How many of them are of a master key that was given up: nothing is said about these.",
    }),
    problems: Type.Array(
      Type.Object({
        code: Type.Enum([
          "altered",
          "missing",
          "unexpected",
          "truncated",
          "anchor_mismatch",
          "anchor_missing",
          "anchor_invalid",
        ]),
        sequence: Type.Integer({ description: "The first entry concerned." }),
      }),
    ),
  },
  { description: "What a walk along the whole chain found." },
);
export type AuditVerification = Static<typeof AuditVerification>;
