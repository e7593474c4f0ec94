// An operation on its way out says so in every answer: Deprecation (RFC 9745), Sunset (RFC 8594), and where to read on. A route
// of this API lives at least 24 months from the one to the other.
import type { FastifyInstance } from "fastify";

export interface DeprecatedRoute {
  /** RFC 3339: since when. */
  readonly since: string;
  /** RFC 3339: when it goes; at least 24 months later. */
  readonly sunset: string;
}

declare module "fastify" {
  interface FastifyContextConfig {
    deprecated?: DeprecatedRoute;
  }
}

const MONTHS = 24;

export function useDeprecation(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    const deprecated = route.config?.deprecated;
    if (!deprecated) return;
    const since = new Date(deprecated.since);
    const sunset = new Date(deprecated.sunset);
    const earliest = new Date(since);
    earliest.setUTCMonth(earliest.getUTCMonth() + MONTHS);
    if (!(sunset >= earliest))
      throw new Error(`route ${route.url} goes less than ${MONTHS} months after its deprecation`);
    const headers = {
      deprecation: `@${Math.floor(since.getTime() / 1_000)}`,
      sunset: sunset.toUTCString(),
      link: '</docs>; rel="deprecation"; type="text/html"',
    };
    route.onSend = [
      (_request, reply, _payload, done) => {
        reply.headers(headers);
        done();
      },
      ...[route.onSend ?? []].flat(),
    ];
  });
}
