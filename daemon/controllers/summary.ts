// A controller as lists and `get` show it.
import type { ControllerSummary } from "./runtime.ts";
import type { Instance } from "./serving/instance.ts";
import type { CatalogueEntry } from "./versions/catalogue.ts";

/** `developed`: what a development session serves under the name. Null where there is none: an instance may outlive its controller by a moment. */
export function summaryOf(
  name: string,
  entry: CatalogueEntry | undefined,
  developed: Instance | null,
): ControllerSummary | null {
  if (!entry && !developed) return null;
  const latest = entry?.aliases.get("latest");
  const serving = developed?.artifact.contract.version ?? latest?.version ?? null;
  const candidate = latest?.candidate ?? null;
  return {
    name,
    serving,
    aliases: Object.fromEntries([...(entry?.aliases ?? [])].map(([alias, { version }]) => [alias, version])),
    rollout: candidate === null ? null : { version: candidate, percent: latest?.percent ?? 0 },
    versions: [...(entry?.versions ?? [])].map(([version, { digest, created_at }]) => ({
      version,
      digest,
      created_at,
    })),
    development: developed !== null,
    contract:
      developed?.artifact.contract ?? (serving === null ? null : (entry?.versions.get(serving)?.contract ?? null)),
  };
}
