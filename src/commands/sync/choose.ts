// What `magic sync create` asks a person at a terminal: a connection, one of its objects, a destination, how to read.
import type { ApiClient } from "#client/http.ts";
import { MagicError } from "#contract/errors.ts";
import type { SyncMode } from "#contract/sync.ts";
import type { Connection, DataObject } from "#contract/wire/connections.ts";
import { askChoice, askText } from "#output/prompt.ts";

/** Answers from a person, with what discovery told on the way. */
export interface Chooser {
  /** `CONNECTION:OBJECT` */
  source(): Promise<string>;
  /** `CONNECTION:TABLE` */
  destination(): Promise<string>;
  /** Nothing where the source was not chosen here. */
  reading(): Promise<{ readonly mode?: SyncMode; readonly cursor_field?: string }>;
}

export function chooser(client: () => Promise<ApiClient>): Chooser {
  let chosen: DataObject | undefined;
  const connection = async (message: string): Promise<string> => {
    const { data } = await (await client()).request<{ data: Connection[] }>("GET", "/v1/connections?limit=100");
    if (data.length === 0)
      throw new MagicError(
        "usage",
        "There are no connections in this environment: make two with `magic connection create`.",
      );
    return askChoice(
      message,
      data.map(({ id, name, provider, status }) => ({
        value: id,
        name: `${name} (${provider}, ${status})`,
        description: id,
      })),
    );
  };
  return {
    source: async () => {
      const id = await connection("From which connection?");
      const { data } = await (await client()).request<{ data: DataObject[] }>("GET", `/v1/connections/${id}/objects`);
      if (data.length === 0) return `${id}:${await askText("Which object? Discovery found none.")}`;
      const name = await askChoice(
        "Which object?",
        data.map((one) => ({ value: one.name, name: one.name, description: about(one) })),
      );
      chosen = data.find((one) => one.name === name);
      return `${id}:${name}`;
    },
    destination: async () => {
      const id = await connection("To which connection?");
      return `${id}:${await askText("Into which table?", chosen?.name.replace(/^.*\./, ""))}`;
    },
    reading: async () => {
      const cursors = chosen?.cursor_candidates ?? [];
      if (chosen === undefined || cursors.length === 0) return {};
      const mode = await askChoice<SyncMode>("How?", [
        { value: "full_refresh", name: "full refresh", description: "every run replaces the table" },
        { value: "incremental", name: "incremental", description: "every run takes what is new" },
      ]);
      if (mode === "full_refresh") return { mode };
      const cursor_field = await askChoice(
        "Which column grows with every change?",
        cursors.map((value) => ({ value, name: value })),
      );
      return { mode, cursor_field };
    },
  };
}

function about({ primary_key }: DataObject): string {
  return primary_key.length > 0 ? `primary key ${primary_key.join(", ")}` : "no primary key";
}
