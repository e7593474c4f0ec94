// What a contract grants, and the refusal of what it does not: granted is exactly what is declared.
import type { Capability, ControllerContract } from "#contract/controller.ts";
import { MagicError } from "#contract/errors.ts";

type Scopes = NonNullable<ControllerContract["scopes"]>;
export type HttpGrant = NonNullable<Scopes["http"]>[number];

export interface Grants {
  /** Throws `capability_denied` that names the line to add. */
  need(capability: Capability): void;
  /** null: whatever the gateway allows. */
  readonly models: readonly string[] | null;
  readonly usdPerDay: number | null;
  readonly http: readonly HttpGrant[];
  readonly databases: ReadonlyMap<string, "read" | "write">;
  readonly secrets: ReadonlySet<string>;
  /** null: any. */
  readonly controllers: ReadonlySet<string> | null;
  readonly syncs: ReadonlySet<string> | null;
}

export function grantsOf(contract: ControllerContract): Grants {
  const capabilities = new Set<string>(contract.capabilities);
  const scopes = contract.scopes ?? {};
  return {
    need(capability) {
      if (capabilities.has(capability)) return;
      const all = [...capabilities, capability].join(", ");
      throw denied(contract.name, `capabilities: [${all}]`, `it does not declare ${capability}`);
    },
    models: scopes.llm?.models ?? null,
    usdPerDay: scopes.llm?.usd_per_day ?? null,
    http: scopes.http ?? [],
    databases: new Map((scopes.db ?? []).map(({ name, mode }) => [name, mode ?? "read"])),
    secrets: new Set(scopes.secrets),
    controllers: scopes.controllers ? new Set(scopes.controllers) : null,
    syncs: scopes.syncs ? new Set(scopes.syncs) : null,
  };
}

export function denied(controller: string, line: string, why: string): MagicError {
  return new MagicError("capability_denied", `the contract of ${controller}: ${why}; add to contract.yaml: ${line}`, {
    extra: { add: line },
  });
}
