// The controller routes: invoke, deploy, versions, aliases.
import { Readable } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import Type from "typebox";
import type { ControllerContract } from "#contract/controller.ts";
import { MagicError } from "#contract/errors.ts";
import {
  Alias,
  ControllerDocument,
  ControllersQuery,
  ControllerVersion,
  DeployedVersion,
  DeployRequest,
  InvokeRequest,
  InvokeResponse,
  PromoteRequest,
  RollbackRequest,
} from "#contract/wire/controllers.ts";
import { listOf } from "#contract/wire/list.ts";
import { readContractApart } from "#daemon/controllers/contract-thread.ts";
import type { ControllerRuntime, ControllerSummary, InvocationResult } from "#daemon/controllers/runtime.ts";
import { isLargeOutput, type LargeOutput } from "#daemon/controllers/serving/large-output.ts";
import { type ListOptions, pageByName, pageInMemory } from "#daemon/storage/list.ts";
import { type AbortNotice, abortSource } from "#shared/abort.ts";

export interface ControllerServices {
  readonly controllers: ControllerRuntime;
}

interface Named {
  readonly name: string;
}

const INPUT_LIMIT = 8 * 1024 * 1024;
/** The largest bundle with its source map, which may be twice as long and more. */
const BUNDLE_LIMIT = 48 * 1024 * 1024;

export function controllerRoutes(app: FastifyInstance, { controllers }: ControllerServices): void {
  const surface = "controllers" as const;
  const read = { scope: "controllers:read", surface } as const;
  const write = { scope: "controllers:write", surface } as const;

  app.post<{ Params: Named; Body: { input?: unknown; version?: string } }>(
    "/v1/controllers/:name/invoke",
    {
      config: { scope: "controllers:invoke", surface, ownLine: true, fails: ["output_invalid", "timeout"] },
      bodyLimit: INPUT_LIMIT,
      schema: {
        operationId: "invokeController",
        summary: "Run a controller's handler",
        body: InvokeRequest,
        response: { 200: InvokeResponse },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const result = await controllers.invoke(request.params.name, {
        input: body.input,
        version: body.version,
        requestId: request.requestId,
        principal: request.principal,
        signal: departureOf(request),
        span: request.span,
      });
      return isLargeOutput(result.output) ? sendLarge(request, reply, result, result.output) : result;
    },
  );

  app.post<{
    Body: { contract: unknown; code: string; map?: string; digest: string; alias?: string; percent?: number };
  }>(
    "/v1/controllers",
    {
      config: write,
      bodyLimit: BUNDLE_LIMIT,
      schema: {
        operationId: "deployController",
        summary: "Deploy an immutable version and point an alias at it",
        body: DeployRequest,
        response: { 201: DeployedVersion },
      },
    },
    async (request, reply) => {
      const { contract, code, map = "", digest, alias, percent } = request.body;
      const artifact = { contract: await checked(contract, request.principal.id), code, map, digest };
      const options = { ...(alias !== undefined && { alias }), ...(percent !== undefined && { percent }) };
      return reply.code(201).send({ ...(await controllers.deploy(artifact, options)), object: "controller_version" });
    },
  );

  app.get<{ Querystring: ListOptions }>(
    "/v1/controllers",
    {
      config: read,
      schema: {
        operationId: "listControllers",
        summary: "List the controllers, by name",
        querystring: ControllersQuery,
        response: { 200: listOf(ControllerDocument) },
      },
    },
    async ({ query }) => pageByName((await controllers.list()).map(document), query, ({ name }) => name),
  );

  app.get<{ Params: Named }>(
    "/v1/controllers/:name",
    { config: read, schema: { operationId: "getController", response: { 200: ControllerDocument } } },
    async ({ params }) => document(await controllers.get(params.name)),
  );

  app.get<{ Params: Named; Querystring: ListOptions }>(
    "/v1/controllers/:name/versions",
    {
      config: read,
      schema: {
        operationId: "listControllerVersions",
        summary: "List a controller's versions, newest first",
        querystring: ControllersQuery,
        response: { 200: listOf(ControllerVersion) },
      },
    },
    async ({ params, query }) => {
      const { versions } = await controllers.get(params.name);
      return pageInMemory([...versions].reverse(), query, ({ version }) => version);
    },
  );

  app.put<{ Params: Named & { alias: string }; Body: { version: string; percent?: number } }>(
    "/v1/controllers/:name/aliases/:alias",
    {
      config: write,
      schema: {
        operationId: "promoteController",
        summary: "Point an alias at a version, or give the version a share of the alias's calls",
        params: Type.Object({ name: Type.String(), alias: Alias }),
        body: PromoteRequest,
        response: { 200: ControllerDocument },
      },
    },
    async ({ params, body }) =>
      document(await controllers.promote(params.name, params.alias, body.version, body.percent ?? 100)),
  );

  app.post<{ Params: Named; Body: { alias?: string } | undefined }>(
    "/v1/controllers/:name/rollback",
    {
      config: write,
      schema: {
        operationId: "rollbackController",
        summary: "Point an alias back at what it pointed at before",
        body: RollbackRequest,
        response: { 200: ControllerDocument },
      },
    },
    async ({ params, body }) => document(await controllers.rollback(params.name, body?.alias)),
  );

  app.delete<{ Params: Named }>(
    "/v1/controllers/:name",
    {
      config: write,
      schema: {
        operationId: "deleteController",
        summary: "Remove a controller after its calls ended",
        response: { 204: Type.Null({ description: "Removed." }) },
      },
    },
    async ({ params }, reply) => {
      await controllers.remove(params.name);
      return reply.code(204).send();
    },
  );

  app.delete<{ Params: Named & { version: string } }>(
    "/v1/controllers/:name/versions/:version",
    {
      config: { ...write, fails: ["conflict"] },
      schema: {
        operationId: "deleteControllerVersion",
        summary: "Drain and remove a version no alias points at",
        response: { 204: Type.Null({ description: "Removed." }) },
      },
    },
    async ({ params }, reply) => {
      await controllers.remove(params.name, params.version);
      return reply.code(204).send();
    },
  );
}

/** A deployed contract is checked as one on disk is: the caller's tools may be older, or hostile. */
async function checked(contract: unknown, by: string | null): Promise<ControllerContract> {
  const reading = await readContractApart(JSON.stringify(contract), "contract", by);
  if (reading.contract) return reading.contract;
  throw new MagicError("contract_invalid", reading.problems[0]?.message ?? "the contract is not valid", {
    problems: reading.problems.map(({ pointer, code, message }) => ({
      pointer: `/contract${pointer}`,
      code,
      detail: message,
    })),
  });
}

/** A socket on the same machine takes megabytes at once, and the kernel's copying is done on this thread: 0.6 ms a megabyte. */
const PIECE = 64 * 1024;

/** The output's text goes out as it came in, a piece a turn of the event loop: whoever calls besides does not wait for all of it. */
function sendLarge(
  request: FastifyRequest,
  reply: FastifyReply,
  result: InvocationResult,
  { json, release }: LargeOutput,
): FastifyReply {
  const head = Buffer.from('{"output":');
  const tail = Buffer.from(`,${JSON.stringify({ ...result, output: undefined }).slice(1)}`);
  reply.type("application/json; charset=utf-8");
  // Sent, or given up.
  reply.raw.once("close", release);
  // What is kept under an idempotency key is kept whole.
  if (request.reservation !== null) return reply.send(Buffer.concat([head, json, tail]));
  reply.header("content-length", head.length + json.length + tail.length);
  return reply.send(
    Readable.from(
      (async function* () {
        yield head;
        for (let at = 0; at < json.length; at += PIECE) {
          yield json.subarray(at, at + PIECE);
          await turn();
        }
        yield tail;
      })(),
      { objectMode: false },
    ),
  );
}

function document(summary: ControllerSummary): ControllerSummary & { object: "controller" } {
  return { object: "controller", ...summary };
}

/** Tells when the caller leaves before the answer. One with an idempotency key comes back for it: the call runs to its end. */
function departureOf(request: FastifyRequest): AbortNotice {
  const departure = abortSource();
  if (request.reservation === null) request.left = () => departure.abort();
  return departure.signal;
}
