// The way to the token endpoints of connectors' providers: the daemon's own, but where MAGIC_HTTP_REWRITE sends their requests elsewhere.
import { createEgress, type Egress } from "#daemon/egress/egress.ts";
import { parseRewrite, rewriteTargets } from "../connectors/declarative/http/rewrite.ts";

export function wayToProviders(setting: string | undefined, allowPrivate: () => readonly string[]): Egress {
  const egress = createEgress({ allowPrivate: () => [...allowPrivate(), ...rewriteTargets(setting)] });
  if (!setting) return egress;
  return {
    ...egress,
    async request(address, options = {}) {
      const url = new URL(address);
      const target = parseRewrite(setting)?.(url);
      if (!target) return egress.request(url, options);
      const headers = { ...options.headers, host: target.host };
      return egress.request(`${target.origin}${url.pathname}${url.search}`, { ...options, headers });
    },
  };
}
