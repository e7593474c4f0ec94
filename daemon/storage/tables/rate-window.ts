/** The calls that a rate limit remembers across a restart. */
export interface RateWindowTable {
  readonly name: string;
  /** JSON: {times, ahead}. */
  readonly value: string;
}

export interface RateWindowTables {
  readonly rate_window: RateWindowTable;
}
