// What the gateway adds to a request, and servers of OpenAI's format may refuse: `stream_options`, to have each stream counted, and the token's `user`.
// Who refuses one is asked without it; such streams are counted as those without a usage are, by an estimate.

export interface Additions {
  readonly counting: boolean;
  readonly user: boolean;
}

/** Those that a refusal may be for. */
export function refusedAdditions(status: number, body: string): (keyof Additions)[] {
  if (status !== 400 && status !== 422) return [];
  return [...(COUNTING.test(body) ? (["counting"] as const) : []), ...(USER.test(body) ? (["user"] as const) : [])];
}

const COUNTING = /stream_options|include_usage/;
/** "Unsupported parameter: user", "Unrecognized request argument supplied: user", "Unknown name \\"user\\"", FastAPI's place of it. */
const USER =
  /\b(?:parameter|argument|field|name|property|key|input)s?(?: supplied| provided)?[^a-z]{1,20}user\b|"body",\s*"user"\s*\]/i;
