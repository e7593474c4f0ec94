// 406 for a caller that accepts none of a route's media types (RFC 9110, section 12.5.1), 415 for compressed bodies: what is
// not decoded cannot be a bomb. 415 too for other charsets: read as UTF-8 some of their text would be another one, without a word.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { MagicError } from "#contract/errors.ts";
import { producedBy } from "../route-config.ts";

export function useContentGuards(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    const produced = producedBy(request.route);
    if (!accepts(request.headers.accept, produced))
      throw new MagicError("not_acceptable", `This answers ${produced.join(" or ")}.`);
    if (!readsBody(request)) return done();
    const encoding = request.headers["content-encoding"];
    if (encoding !== undefined && encoding.trim().toLowerCase() !== "identity")
      throw new MagicError(
        "unsupported_media_type",
        `A body with Content-Encoding ${encoding.slice(0, 50)} is not taken.`,
      );
    const charset = charsetOf(request.headers["content-type"]);
    if (charset && !taken.has(charset))
      throw new MagicError(
        "unsupported_media_type",
        `A body in charset ${charset.slice(0, 50)} is not taken: send UTF-8.`,
      );
    done();
  });
}

/** US-ASCII is UTF-8 as it stands. */
const taken: ReadonlySet<string> = new Set(["utf-8", "utf8", "us-ascii", "ascii"]);

function charsetOf(contentType: string | undefined): string | undefined {
  return contentType === undefined
    ? undefined
    : /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(contentType)?.[1]?.toLowerCase();
}

// Some clients name their charset with every request; of a GET no body is read.
function readsBody({ method, headers }: FastifyRequest): boolean {
  if (method === "GET" || method === "HEAD") return false;
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** What nearly every client sends. */
const ANYTHING = "*/*";

/** True when the Accept header (absent: anything) admits one of the media types, or problem+json beside JSON. */
function accepts(header: string | undefined, produced: readonly string[]): boolean {
  if (header === undefined || header === ANYTHING || header.trim() === "") return true;
  const ranges = header.split(",").map(parseRange);
  const offered = produced.includes("application/json") ? [...produced, "application/problem+json"] : produced;
  return offered.some((type) => quality(type, ranges) > 0);
}

interface Range {
  readonly type: string;
  readonly q: number;
}

function parseRange(text: string): Range {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const q = parameters.find((parameter) => parameter.startsWith("q="));
  const value = q === undefined ? 1 : Number(q.slice(2));
  return { type, q: Number.isFinite(value) ? value : 0 };
}

// The most specific range decides.
function quality(type: string, ranges: readonly Range[]): number {
  const [major] = type.split("/");
  for (const wanted of [type, `${major}/*`, "*/*"]) {
    const found = ranges.find((range) => range.type === wanted);
    if (found) return found.q;
  }
  return 0;
}
