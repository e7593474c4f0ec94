import { createHash } from "node:crypto";
import type { ControllerContract } from "#contract/controller.ts";

/** `sha256:<hex>` over the contract in canonical JSON and the code: the same sources give the same digest everywhere. */
export function digestOf(contract: ControllerContract, code: string): string {
  const hash = createHash("sha256").update(canonicalJson(contract)).update("\0").update(code);
  return `sha256:${hash.digest("hex")}`;
}

/** JSON with the members of every object in code unit order (the ordering of RFC 8785, section 3.2.3). */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)))
      : part,
  );
}
