import { MagicError } from "#contract/errors.ts";

/** The value of --percent. */
export function percentOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= 100) return Number(text);
  throw new MagicError("usage", `--percent ${text} is not a whole number from 1 to 100.`);
}
