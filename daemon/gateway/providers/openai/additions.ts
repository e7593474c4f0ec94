// What the gateway adds to a request, and servers of OpenAI's format may refuse: `stream_options`, to have each stream counted, and the token's `user`.
// Who refuses one is asked without it; such streams are counted as those without a usage are, by an estimate.
import type { UpstreamRequest } from "#daemon/gateway/upstream/exchange.ts";
import type { Target } from "../adapter.ts";
import { refusing } from "../refusing.ts";
import type { Asked, Relent } from "../wire.ts";

export type Addition = "counting" | "user";
export type Additions = Readonly<Record<Addition, boolean>>;

const all: readonly Addition[] = ["counting", "user"];

/** Makes requests with what their servers are not known to refuse, remembering who did. */
export function additions() {
  const refusers = { counting: refusing(), user: refusing() };

  /** `adds`: whether an addition is the gateway's own, and no word of the client's. */
  function ask(target: Target, adds: (one: Addition) => boolean, make: (given: Additions) => UpstreamRequest): Asked {
    return askWith({ counting: !refusers.counting.has(target), user: !refusers.user.has(target) });

    // A server may refuse two of them one after the other.
    function askWith(given: Additions): Asked {
      const relent: Relent = (status, body) => {
        const refused = refusedBy(status, body).filter((one) => given[one] && adds(one));
        if (refused.length === 0) return null;
        const rest = { ...given, ...Object.fromEntries(refused.map((one) => [one, false])) };
        const worked = () => {
          for (const one of all) if (!rest[one]) refusers[one].add(target);
        };
        return { ...askWith(rest), worked };
      };
      return { request: make(given), relent };
    }
  }
  return { ask };
}

// Those that a refusal may be for.
function refusedBy(status: number, body: string): Addition[] {
  if (status !== 400 && status !== 422) return [];
  return all.filter((one) => words[one].test(body));
}

const words: Readonly<Record<Addition, RegExp>> = {
  counting: /stream_options|include_usage/,
  // "Unsupported parameter: user", "Unrecognized request argument supplied: user", "Unknown name \\"user\\"", FastAPI's place of it.
  user: /\b(?:parameter|argument|field|name|property|key|input)s?(?: supplied| provided)?[^a-z]{1,20}user\b|"body",\s*"user"\s*\]/i,
};
