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
          { title: "name", value: (row) => row.name },
          { title: "serving", value: (row) => (row.development ? `${row.serving ?? "-"} (dev)` : row.serving) },
          { title: "versions", value: (row) => row.versions.length, align: "right" },
          {
            title: "aliases",
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
