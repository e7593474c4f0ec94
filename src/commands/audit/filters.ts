// The filters that `audit list` and `audit export` take.
import { Option } from "commander";
import type { AuditFilters } from "#client/audit.ts";
import { betweenOf } from "#commands/option-values.ts";
import { outcomes } from "#contract/audit.ts";
import { principalTypes } from "#contract/identity.ts";

export interface FilterOptions {
  readonly request?: string;
  readonly outcome?: string;
  readonly identity?: string;
  readonly action?: string;
  readonly since?: string;
  readonly until?: string;
}

export function filterOptions(): Option[] {
  return [
    new Option("--request <id>", "of one request"),
    new Option("--outcome <outcome>", "by how it ended").choices(outcomes),
    new Option("--identity <id>", `by who called: an id, or ${principalTypes.join(", ")}`),
    new Option("--action <action>", "by what was called, e.g. connections.create"),
    new Option("--since <time>", "from here on, e.g. 2026-11-21T09:00:00Z"),
    new Option("--until <time>", "up to here"),
  ];
}

export function filtersOf(options: FilterOptions): AuditFilters {
  const { request, outcome, identity, action } = options;
  return {
    request_id: request,
    outcome,
    identity,
    action,
    ...betweenOf(options),
  };
}
