/** How a project's manifest in `connectors/` may end, in the order that they are looked for. */
export const MANIFEST_ENDINGS = [".yaml", ".yml", ".json"] as const;
