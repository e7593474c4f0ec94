// magic connection check: exit code 8 when the system does not answer.
import { pathPart } from "#client/path-part.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import type { Connection } from "#contract/wire/connections.ts";
import { showConnection } from "./show.ts";

export default defineCommand({
  configure: (command) => command.argument("<id>", "the connection's id"),
  async run(context) {
    const client = await clientOf(context);
    const path = `/v1/connections/${pathPart(context.args[0])}/check`;
    const connection = await client.request<Connection>("POST", path, { body: {} });
    context.output.result(connection, showConnection(connection));
    return connection.status === "failed" ? exitCodes.upstream : exitCodes.ok;
  },
});
