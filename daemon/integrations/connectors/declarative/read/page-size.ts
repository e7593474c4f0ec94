// `page_size_reduction`: the same page again, of fewer records, where a vendor says that it was too much for one answer.
import { MagicError } from "#contract/errors.ts";
import type { Context } from "../context.ts";
import { type Component, manifestError, optionalText } from "../manifest/component.ts";

export interface PageSize {
  /** What to ask for; undefined: what the paginator says. */
  readonly now: number | undefined;
  /** After a refusal: waits, then the next one is smaller, or the same where there is none smaller. */
  reduce(refusal: string): Promise<void>;
  succeeded(): void;
}

/** @param configured what the paginator asks for. */
export function pageSizeOf(context: Context, component: Component | undefined, configured: unknown): PageSize {
  const number = (field: string, otherwise: number): number => Number(component?.[field] ?? otherwise);
  let now: number | undefined;
  let reductions = 0;
  let repeats = 0;
  return {
    get now() {
      return now;
    },
    async reduce(refusal) {
      if (!component) throw new MagicError("upstream_error", `${refusal}: the manifest has no page_size_reduction`);
      const size = now ?? Number(configured);
      if (!Number.isInteger(size)) throw manifestError("page_size_reduction needs a page_size that is a number");
      const smaller = Math.max(number("minimum_page_size", 1), Math.floor(size / number("reduction_factor", 2)));
      const isLast = smaller >= size;
      const tries = isLast ? ++repeats : ++reductions;
      if (tries > (isLast ? number("retries_at_minimum_page_size", 0) : number("max_attempts", 5))) {
        const advice = optionalText(component, "failure_message");
        const said = `${refusal}, down to ${size} records a page`;
        throw new MagicError("upstream_error", advice ? `${said}. ${advice}` : said);
      }
      if (!isLast) now = smaller;
      const seconds = number("backoff_seconds", 0.5) * tries;
      context.log("info", `${refusal}; asking for ${now ?? size} records in ${seconds} s`);
      await context.sleep(seconds * 1000);
    },
    succeeded() {
      reductions = 0;
      repeats = 0;
      if (component?.["reset_policy"] === "AFTER_SUCCESSFUL_PAGE") now = undefined;
    },
  };
}
