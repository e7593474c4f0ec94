// The same read with nothing around it: Fastify and node:sqlite over the daemon's own database. Nobody is asked who they are,
// nothing is counted or recorded.
import { DatabaseSync } from "node:sqlite";
import fastify from "fastify";

const { PORT, DATABASE = "" } = process.env;
const db = new DatabaseSync(DATABASE, { readOnly: true });
const sync = db.prepare("select * from sync where id = ? and environment = 'live'");
const run = db.prepare("select * from run where id = ?");
const app = fastify();
app.get<{ Params: { id: string } }>("/v1/syncs/:id", (request, reply) => {
  const row = sync.get(request.params.id);
  if (row === undefined) return reply.code(404).send({ code: "not_found" });
  const { body, ...rest } = row;
  const last = row["last_run"] === null ? undefined : run.get(row["last_run"] as string);
  return reply.send({
    ...rest,
    ...(JSON.parse(String(body)) as object),
    last_run: last ? { ...last, ...(JSON.parse(String(last["body"])) as object) } : null,
  });
});
await app.listen({ port: Number(PORT), host: "127.0.0.1" });
console.log("listening");
