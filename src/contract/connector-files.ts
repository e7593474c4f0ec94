/** How a project's manifest in `connectors/` may end, in the order that they are looked for. */
export const MANIFEST_ENDINGS = [".yaml", ".yml", ".json"] as const;

/** A larger manifest is not read. */
export const MAX_MANIFEST_BYTES = 20 * 1024 * 1024;
