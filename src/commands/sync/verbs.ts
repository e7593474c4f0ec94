// The verbs of `magic sync`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

const shared = () => import("#commands/resource-verbs.ts");
const path = (id: string) => `/v1/syncs/${id}`;

export const verbs: Verbs = {
  create: { summary: "Move an object of one connection to a table of another", load: () => import("./create.ts") },
  list: {
    summary: "List syncs",
    load: async () => {
      const columns = [
        { title: "ID", value: ({ id }: SyncRow) => id },
        { title: "NAME", value: ({ name }: SyncRow) => name },
        { title: "OBJECT", value: ({ source }: SyncRow) => source.object },
        { title: "TABLE", value: ({ destination }: SyncRow) => destination.table },
        { title: "STATUS", value: ({ status }: SyncRow) => status },
        { title: "RECORDS", value: ({ records_synced }: SyncRow) => records_synced, align: "right" as const },
        { title: "NEXT RUN", value: ({ next_run_at }: SyncRow) => next_run_at },
      ];
      const filters = { status: "those in this status", connection: "those from or to this connection" };
      const { listVerb } = await shared();
      return { default: listVerb({ nouns: "syncs", path: () => "/v1/syncs", columns, filters }) };
    },
  },
  get: {
    summary: "Show one sync",
    load: async () => ({ default: (await shared()).getVerb("sync", path, (await import("./show.ts")).showSync) }),
  },
  trigger: { summary: "Run a sync now", load: () => import("./trigger.ts") },
  watch: { summary: "Follow the run under way", load: () => import("./watch.ts") },
  pause: {
    summary: "Stop a sync's schedule and its run",
    load: async () => ({ default: (await import("./set-status.ts")).setStatus("paused") }),
  },
  resume: {
    summary: "Take a paused sync up again",
    load: async () => ({ default: (await import("./set-status.ts")).setStatus("active") }),
  },
  runs: {
    summary: "List a sync's runs",
    load: async () => {
      const columns = [
        { title: "ID", value: ({ id }: RunRow) => id },
        { title: "STATUS", value: ({ status }: RunRow) => status },
        { title: "TRIGGER", value: ({ trigger }: RunRow) => trigger },
        { title: "STARTED", value: ({ started_at }: RunRow) => started_at },
        { title: "SYNCED", value: ({ records_synced }: RunRow) => records_synced, align: "right" as const },
        { title: "REJECTED", value: ({ records_rejected }: RunRow) => records_rejected, align: "right" as const },
        { title: "ERROR", value: ({ error }: RunRow) => error?.message },
      ];
      const [argument, filters] = ["the sync's id", { status: "those in this status" }];
      const { listVerb } = await shared();
      return { default: listVerb({ nouns: "runs", argument, path: (id) => `${path(id)}/runs`, columns, filters }) };
    },
  },
  rejects: {
    summary: "List the records that a run, or a sync's last run, put into quarantine",
    load: () => import("./rejects.ts"),
  },
  delete: {
    summary: "Delete a sync and its runs",
    load: async () => ({ default: (await shared()).deleteVerb("sync", path) }),
  },
  run: { summary: "Move data between two URLs or files, without a daemon", load: () => import("./run.ts") },
};

type SyncRow = import("#contract/wire/syncs.ts").Sync;
type RunRow = import("#contract/wire/syncs.ts").Run;
