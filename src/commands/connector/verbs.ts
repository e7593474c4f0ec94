// The verbs of `magic connector`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  list: {
    summary: "List the systems that connections can be made to",
    load: async () => {
      const columns = [
        { title: "ID", value: ({ id }: Row) => id },
        { title: "NAME", value: ({ name }: Row) => name },
        { title: "CATEGORY", value: ({ category }: Row) => category },
        { title: "GRADE", value: ({ grade }: Row) => grade },
        // What is incremental reads in full as well; 80 characters a row.
        {
          title: "SYNC",
          value: ({ capabilities }: Row) => (capabilities.modes.includes("incremental") ? "incremental" : "full"),
        },
      ];
      const { listVerb } = await import("#commands/resource-verbs.ts");
      const filters = { category: "this category" };
      return { default: listVerb({ nouns: "connectors", path: () => "/v1/connectors", columns, filters }) };
    },
  },
  show: { summary: "Show one system: what it needs and offers", load: () => import("#commands/connector/show.ts") },
  new: { summary: "Make a connector from an API's address", load: () => import("#commands/connector/new.ts") },
  add: { summary: "Take a low-code manifest into the project", load: () => import("#commands/connector/add.ts") },
  test: { summary: "Check a configuration against the vendor", load: () => import("#commands/connector/test.ts") },
  read: { summary: "Print a stream's records", load: () => import("#commands/connector/read.ts") },
  eval: { summary: "Evaluate manifest templates from stdin", load: () => import("#commands/connector/eval.ts") },
};

type Row = import("#contract/wire/connectors.ts").Connector;
