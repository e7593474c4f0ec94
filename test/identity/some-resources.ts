// One resource of each kind, so that generated requests meet something.
import type { ControllerContract } from "#contract/controller.ts";
import { digestOf } from "#daemon/controllers/bundle/digest.ts";
import type { TestDaemon } from "./daemon.ts";

/** Their ids, in the environment of `token`. */
export async function someResources(daemon: TestDaemon, token: string): Promise<string[]> {
  const make = async (path: string, body: object): Promise<string | undefined> =>
    (await daemon.call("POST", path, { token, body })).body?.id;
  const { data } = (await daemon.call("GET", "/v1/connectors?limit=1", { token })).body;
  const connection = await make("/v1/connections", { provider: data[0].id });
  const end = { connection, object: "o" };
  const sync = await make("/v1/syncs", { source: end, destination: { connection, table: "t" } });
  const contract: ControllerContract = { name: "echo", version: "1.0.0", input_schema: true, output_schema: true };
  const code = "module.exports = ({ input }) => input;";
  await make("/v1/controllers", { contract, code, digest: digestOf(contract, code) });
  const found = [
    connection,
    sync,
    await make(`/v1/syncs/${sync}/trigger`, {}),
    await make("/v1/webhooks", { url: "https://example.com/hook", events: ["sync.failed"] }),
    await make("/v1/clients", { scopes: ["syncs:read"] }),
    await make("/v1/gateway-tokens", {}),
    data[0].id,
    ...[contract.name, contract.version, "latest"],
  ];
  return found.filter((id): id is string => id !== undefined);
}
