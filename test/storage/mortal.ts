// Storage whose daemons can be declared dead: on Postgres that goes by its own clock, which no test can set.
import type { Storage } from "#daemon/storage/storage.ts";

export function mortal(storage: Storage): { readonly storage: Storage; die(): Promise<void> } {
  const { idempotency } = storage.units;
  const leases: Parameters<typeof idempotency.live>[0][] = [];
  const live: typeof idempotency.live = (lease) => {
    leases.push(lease);
    return idempotency.live(lease);
  };
  const over = <T extends object>(whole: T, name: keyof T, part: unknown): T =>
    new Proxy(whole, { get: (_, asked) => (asked === name ? part : Reflect.get(whole, asked)) });
  return {
    storage: over(storage, "units", over(storage.units, "idempotency", over(idempotency, "live", live))),
    async die() {
      for (const lease of leases) await idempotency.live({ ...lease, until: lease.now });
    },
  };
}
