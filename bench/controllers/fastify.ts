// What a daemon without cells would cost: a bare Fastify route that checks the input and the output of the same handler in-process.
import { Ajv2020 } from "ajv/dist/2020.js";
import fastify from "fastify";
import { inputSchema, outputSchema, run } from "./subject.ts";

const ajv = new Ajv2020({ strict: false });
const checkInput = ajv.compile(inputSchema);
const checkOutput = ajv.compile(outputSchema);
const token = `Bearer ${process.env["TOKEN"]}`;
const app = fastify({ logger: false, bodyLimit: 8 * 1024 * 1024 });
app.post<{ Body: { input: { text: string } } }>("/v1/controllers/echo/invoke", async (request, reply) => {
  if (request.headers.authorization !== token) return reply.code(401).send({ code: "unauthorized" });
  const began = performance.now();
  const { input } = request.body;
  if (!checkInput(input)) return reply.code(422).send({ code: "input_invalid", problems: checkInput.errors });
  const output = await run(input);
  if (!checkOutput(output)) return reply.code(502).send({ code: "output_invalid", problems: checkOutput.errors });
  return {
    output,
    request_id: crypto.randomUUID(),
    version: "1.0.0",
    duration_ms: performance.now() - began,
    usage: {},
  };
});
console.log(await app.listen({ port: 0, host: "127.0.0.1" }));
