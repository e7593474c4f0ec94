// The headers by which the gateway tells what it did for a call.
import type { Hold } from "./limits/limits.ts";
import { dollarsText } from "./pricing/price.ts";
import type { Notes } from "./providers/adapter.ts";
import type { Attempted } from "./routing/attempts.ts";
import type { Plan } from "./routing/plan.ts";

/** Characters. */
const MAX_DROPPED = 2_000;

/** Who answered, how it was chosen, and what is left of the caller's limits. */
export function headersOf(plan: Plan, hold: Hold, { candidate, attempts }: Attempted): Record<string, string> {
  return {
    ...hold.headers,
    "x-magic-provider": candidate.configured.name,
    "x-magic-model": headerText(candidate.target.model),
    "x-magic-route": headerText(plan.policy ? `policy:${plan.policy}` : "pinned"),
    "x-magic-attempts": String(attempts.length),
  };
}

/** What was left out of the request, or done in another way than asked. */
export function noteIn(headers: Record<string, string>, { dropped, responseFormat }: Notes): void {
  if (dropped.length > 0) headers["x-magic-dropped"] = droppedText(dropped);
  if (responseFormat) headers["x-magic-response-format"] = responseFormat;
}

/** `cost` in pico-dollars; null where it is not known. */
export function priceIn(headers: Record<string, string>, cost: number | null): void {
  if (cost === null) return;
  headers["x-magic-cost-usd"] = dollarsText(cost);
}

// Clients give up an answer whose headers have 16 kB together, and unknown parameters are as many as a client sends.
function droppedText(names: readonly string[]): string {
  let text = "";
  for (const [at, name] of names.entries()) {
    const longer = at === 0 ? headerText(name) : `${text}, ${headerText(name)}`;
    if (longer.length > MAX_DROPPED) return `${text}${at === 0 ? "" : ", "}and ${names.length - at} more`;
    text = longer;
  }
  return text;
}

// A model's id comes from the client: what no header may hold is percent-encoded.
function headerText(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return text;
  return text.replace(/[^\x20-\x7e]/gu, (character) => encodeURIComponent(character.toWellFormed()));
}
