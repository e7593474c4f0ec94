// Servers of OpenAI's format that refuse `stream_options`, which the gateway adds to each stream to have it counted: learned from a refusal
// that is none without them, and not sent to them again. Their streams are counted as those without a usage are: by an estimate.
import type { Target } from "../adapter.ts";

/** Bounded, for a configuration that changes for ever. */
const MOST = 1_000;

export interface Uncounted {
  has(target: Target): boolean;
  add(target: Target): void;
}

export function uncountedServers(): Uncounted {
  const refusing = new Set<string>();
  return {
    has: (target) => refusing.size > 0 && refusing.has(keyOf(target)),
    add(target) {
      if (refusing.size >= MOST) refusing.clear();
      refusing.add(keyOf(target));
    },
  };
}

/** Whether a refusal may be for that. */
export function refusesCounting(status: number, body: string): boolean {
  return (status === 400 || status === 422) && /stream_options|include_usage/.test(body);
}

// Behind one address there may be several servers, each with models of its own.
function keyOf({ baseUrl, model }: Target): string {
  return `${baseUrl ?? ""}\0${model}`;
}
