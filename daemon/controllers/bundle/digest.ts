import { createHash } from "node:crypto";
import { canonicalJson } from "#contract/canonical-json.ts";
import type { ControllerContract } from "#contract/controller.ts";

/** `sha256:<hex>` over the contract in canonical JSON and the code: the same sources give the same digest everywhere. */
export function digestOf(contract: ControllerContract, code: string): string {
  const hash = createHash("sha256").update(canonicalJson(contract)).update("\0").update(code);
  return `sha256:${hash.digest("hex")}`;
}
