// The verbs of `magic connection`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

const shared = () => import("#commands/resource-verbs.ts");
const path = (id: string) => `/v1/connections/${id}`;

export const verbs: Verbs = {
  create: { summary: "Connect a system", load: () => import("./create.ts") },
  list: {
    summary: "List connections",
    load: async () => {
      const columns = [
        { title: "ID", value: ({ id }: Row) => id },
        { title: "PROVIDER", value: ({ provider }: Row) => provider },
        { title: "NAME", value: ({ name }: Row) => name },
        { title: "STATUS", value: ({ status }: Row) => status },
        { title: "LAST SYNCED", value: ({ last_synced_at }: Row) => last_synced_at },
      ];
      const filters = { provider: "this connector's", status: "those in this status" };
      const { listVerb } = await shared();
      return { default: listVerb({ nouns: "connections", path: () => "/v1/connections", columns, filters }) };
    },
  },
  get: {
    summary: "Show one connection",
    load: async () => ({
      default: (await shared()).getVerb("connection", path, (await import("./show.ts")).showConnection),
    }),
  },
  authorize: { summary: "Authorize a connection anew at its provider", load: () => import("./authorize.ts") },
  check: { summary: "Test a connection now", load: () => import("./check.ts") },
  objects: {
    summary: "Discover what a connection offers",
    load: async () => {
      const columns = [
        { title: "OBJECT", value: ({ name }: ObjectRow) => name },
        { title: "PRIMARY KEY", value: ({ primary_key }: ObjectRow) => primary_key.join(", ") },
        { title: "CURSORS", value: ({ cursor_candidates }: ObjectRow) => cursor_candidates.join(", ") },
        { title: "RECORDS", value: ({ records }: ObjectRow) => records, align: "right" as const },
      ];
      const [argument, preset] = ["the connection's id", "all"];
      const { listVerb } = await shared();
      return {
        default: listVerb({ nouns: "objects", argument, preset, path: (id) => `${path(id)}/objects`, columns }),
      };
    },
  },
  update: { summary: "Change a connection", load: () => import("./update.ts") },
  delete: {
    summary: "Delete a connection and pause its syncs",
    load: async () => ({ default: (await shared()).deleteVerb("connection", path) }),
  },
};

type Row = import("#contract/wire/connections.ts").Connection;
type ObjectRow = import("#contract/wire/connections.ts").DataObject;
