// Arguments of broker calls come from the cell: nothing about them is known.
import { MagicError } from "#contract/errors.ts";

/** The member as text of bounded length. */
export function textOf(args: Record<string, unknown>, key: string, most = 1024 * 1024): string {
  const value = args[key];
  if (typeof value !== "string") throw new MagicError("invalid_request", `${key} must be text`);
  if (value.length > most) throw new MagicError("limit_exceeded", `${key} has more than ${most} characters`);
  return value;
}

/** The member as a list of bounded length; an absent one is empty. */
export function listOf(args: Record<string, unknown>, key: string, most: number): unknown[] {
  const value = args[key] ?? [];
  if (!Array.isArray(value)) throw new MagicError("invalid_request", `${key} must be a list`);
  if (value.length > most) throw new MagicError("limit_exceeded", `${key} has more than ${most} entries`);
  return value;
}
