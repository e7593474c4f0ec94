// What no route answers: 405 with Allow where another method would, else 404.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import type { ErrorForm } from "./route-config.ts";

/** OpenAI's other resources, and its own under a base URL without `/v1`, with two of them or with a slash too many: their clients read its form of errors, and are to learn what there is instead. */
const OPENAI =
  /^(\/+v1)+\/+(responses|conversations|completions|edits|images|audio|videos|files|uploads|moderations|batches|assistants|threads|fine_tuning|vector_stores|containers|evals|engines|realtime|messages|rerank)(\/|$)|^(\/+v1)*\/+(chat|embeddings|models)(\/|$)/;

/** Whoever asks for it reads OpenAI's form of errors. */
export function isOpenai(url: string): boolean {
  return OPENAI.test(url.split("?", 1)[0] ?? "");
}

/** Register before the routes: it learns their methods as they are declared. What it returns throws for what has no route. */
export function useNotFound(app: FastifyInstance): (request: FastifyRequest, reply: FastifyReply) => void {
  const known = new Map<string, { readonly pattern: RegExp; readonly methods: Set<string>; errors?: ErrorForm }>();
  app.addHook("onRoute", (route) => {
    const entry = known.get(route.url) ?? { pattern: patternOf(route.url), methods: new Set<string>() };
    for (const method of [route.method].flat()) entry.methods.add(method.toUpperCase());
    if (route.config?.errors) entry.errors = route.config.errors;
    known.set(route.url, entry);
  });
  const refuse = (request: FastifyRequest, reply: FastifyReply) => {
    const path = request.url.split("?", 1)[0] ?? "/";
    const allowed = new Set<string>();
    for (const { pattern, methods, errors } of known.values()) {
      if (!pattern.test(path)) continue;
      for (const method of methods) allowed.add(method);
      // A gateway path's clients read one form of errors, whatever the method; RFC 6749 has none for a wrong one.
      if (errors === "openai") request.route = { ...request.route, errors };
    }
    if (allowed.size === 0 && isOpenai(path)) {
      request.route = { ...request.route, errors: "openai" };
      const instead = "this gateway has POST /v1/chat/completions, POST /v1/embeddings and GET /v1/models";
      throw new MagicError("not_found", `There is nothing at ${path.slice(0, 200)}: ${instead}.`);
    }
    // Where one begins who has only the address.
    const docs = path === "/" ? " The documentation of the API is at /docs, its description at /openapi.json." : "";
    if (allowed.size === 0) throw new MagicError("not_found", `There is nothing at ${path.slice(0, 200)}.${docs}`);
    const allow = [...allowed].sort().join(", ");
    reply.header("allow", allow);
    throw new MagicError("method_not_allowed", `${request.method} is not allowed here; allowed: ${allow}.`);
  };
  // With a handler of ours the hooks run for unknown routes too, and one of them refuses.
  app.setNotFoundHandler(refuse);
  return refuse;
}

function patternOf(url: string): RegExp {
  const parts = url.split("/").map((part) => {
    if (part === "*") return ".*";
    return part
      .split(/(:[A-Za-z0-9_]+)/)
      .map((piece) => (piece.startsWith(":") && piece.length > 1 ? "[^/]+" : RegExp.escape(piece)))
      .join("");
  });
  return new RegExp(`^${parts.join("/")}$`);
}
