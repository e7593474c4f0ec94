// The places of what is sealed to stay, for whoever seals and opens it, and for whoever tries a key on it.
import type { Place } from "./sealer.ts";

/** The row that a sealed value belongs to. */
export interface Owner {
  readonly id: string;
  readonly environment: string;
}

/** A connection's configuration and credentials. */
export const connectionPlace = ({ id, environment }: Owner): Place => ({
  tenant: environment,
  row: id,
  field: "secret",
});

/** A webhook's signing secrets. */
export const webhookPlace = ({ id, environment }: Owner): Place => ({ tenant: environment, row: id, field: "secrets" });
