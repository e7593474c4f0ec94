/** A deployed version: contract, bundle and source map as they were when it was deployed. Never updated. */
export interface ControllerVersionTable {
  readonly name: string;
  readonly version: string;
  readonly digest: string;
  /** JSON */
  readonly contract: string;
  readonly code: string;
  /** Source map, JSON */
  readonly map: string;
  readonly created_at: string;
}

/** Where a name such as `latest` points; `candidate` gets `percent` of the calls, `previous` is what a rollback returns to. */
export interface ControllerAliasTable {
  readonly controller: string;
  readonly alias: string;
  readonly version: string;
  readonly candidate: string | null;
  readonly percent: number;
  readonly previous: string | null;
  readonly updated_at: string;
}

/** Small durable state of a controller, by environment; the value is JSON. */
export interface ControllerKeyTable {
  readonly controller: string;
  readonly environment: string;
  readonly key: string;
  readonly value: string;
  readonly expires_at: string | null;
}

export interface ControllerTables {
  readonly controller_version: ControllerVersionTable;
  readonly controller_alias: ControllerAliasTable;
  readonly controller_key: ControllerKeyTable;
}
