// A controller as text.
import type { ControllerSummary } from "#client/controllers.ts";
import type { Paint } from "#output/paint.ts";
import { record, table } from "#output/table.ts";

export function showController(found: ControllerSummary, paint: Paint): string {
  const { name, serving, aliases, rollout, versions, development } = found;
  const head = record(
    {
      name,
      serving: development ? `${serving ?? "-"} (from the working folder)` : serving,
      rollout: rollout ? `${rollout.percent} % to ${rollout.version}` : undefined,
    },
    paint,
  );
  const named = (version: string) =>
    Object.entries(aliases)
      .filter(([, at]) => at === version)
      .map(([alias]) => alias)
      .join(", ");
  const body = table(
    [...versions].reverse(),
    [
      { title: "VERSION", value: (row) => row.version },
      { title: "ALIASES", value: (row) => named(row.version) },
      { title: "DEPLOYED", value: (row) => row.created_at },
      { title: "DIGEST", value: (row) => row.digest.slice(0, 19) },
    ],
    paint,
    "No version is deployed.",
  );
  return `${head}\n\n${body}`;
}
