// A controller's folder: what it is not called, and the names under which its contract and its handler are looked for, in this order.

export const CONTRACT_FILES = ["contract.yaml", "contract.yml", "contract.json"] as const;
export const HANDLER_FILES = ["handler.ts", "handler.mts", "handler.js", "handler.mjs", "handler.cjs"] as const;

/** Whether a folder beside the controllers is none, whatever is in it. */
export function isPassedOver(name: string): boolean {
  return name.startsWith(".") || name === "node_modules";
}
