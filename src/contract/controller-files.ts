// A controller's folder: the names under which its contract and its handler are looked for, in this order.

export const CONTRACT_FILES = ["contract.yaml", "contract.yml", "contract.json"] as const;
export const HANDLER_FILES = ["handler.ts", "handler.mts", "handler.js", "handler.mjs", "handler.cjs"] as const;
