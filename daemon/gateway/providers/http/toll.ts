// What an attempt that broke off has cost all the same. Whoever hangs up before the answer, or has no more time for it, has had the prompt
// read, and so has whom an answer breaks off on its way: else a budget could be evaded by leaving, or by asking for more than the time
// allows. A connection that breaks before any answer tells nothing.
import { noUsage, type TokenUsage } from "#daemon/gateway/format/usage.ts";
import type { Failure } from "../failure.ts";

export class Toll {
  /** The provider may have read the request. */
  sent = false;
  /** It has begun an answer that is no refusal. */
  answering = false;
  /** Its answer has come to its end, or as far as it is read. */
  whole = false;

  of({ kind }: Failure, promptTokens: () => number): TokenUsage | null {
    const waited = kind === "aborted" || kind === "timeout";
    if (!this.sent || this.whole || !(waited || this.answering)) return null;
    return { ...noUsage, input: promptTokens(), estimated: true };
  }
}
