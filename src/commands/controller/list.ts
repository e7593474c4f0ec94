// magic controller list
import { listControllers } from "#client/controllers.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { table } from "#output/table.ts";

export default defineCommand({
  async run(context) {
    const data = await listControllers(await clientOf(context));
    context.output.result({ object: "list", data }, (paint) =>
      table(
        data,
        [
          { title: "NAME", value: (row) => row.name },
          { title: "SERVING", value: (row) => (row.development ? `${row.serving ?? "-"} (dev)` : row.serving) },
          { title: "VERSIONS", value: (row) => row.versions.length, align: "right" },
          {
            title: "ALIASES",
            value: (row) =>
              Object.entries(row.aliases)
                .map(([alias, version]) => `${alias}=${version}`)
                .join(" "),
          },
        ],
        paint,
        "No controller is deployed: `magic deploy PATH` does it.",
      ),
    );
  },
});
