// What the gateway adds to a request, and servers of OpenAI's format may refuse: `stream_options`, to have each stream counted, and the token's `user`.
// Who refuses one is asked without it; such streams are counted as those without a usage are, by an estimate.

export interface Additions {
  readonly counting: boolean;
  readonly user: boolean;
}

/** The one that a refusal may be for. */
export function refusedAddition(status: number, body: string): keyof Additions | null {
  if (status !== 400 && status !== 422) return null;
  if (/stream_options|include_usage/.test(body)) return "counting";
  return USER.test(body) ? "user" : null;
}

/** "Unsupported parameter: user", "Unrecognized request argument supplied: user", "Unknown name \\"user\\"", FastAPI's place of it. */
const USER =
  /\b(?:parameter|argument|field|name|property|key|input)s?(?: supplied| provided)?[^a-z]{1,20}user\b|"body",\s*"user"\s*\]/i;
