// What budgets keep beyond a restart, as an interface: daemon/storage/repositories/budget.ts satisfies it.

/** What one account has used up, as stored. Amounts are whole pico-dollars. */
export interface StoredAccount {
  readonly key: string;
  readonly spent: number;
  /** What other daemons on the same state may have in flight. */
  readonly elsewhere: number;
}

/** A change to one account, applied together with the ledger rows that it comes from. */
export interface AccountChange {
  readonly key: string;
  /** Added to what is spent. */
  readonly spent: number;
  /** What may be in flight from now on: charged in full if the daemon dies before it says otherwise. */
  readonly lease: number;
}

export interface BudgetStore {
  /** True where other daemons may spend from the same accounts. */
  readonly shared: boolean;
  load(keys: readonly string[]): Promise<readonly StoredAccount[]>;
  /** Stores what was spent from accounts of which nothing is stored yet; the others stay as they are. */
  begin(accounts: readonly { readonly key: string; readonly spent: number }[]): Promise<void>;
  /**
   * Raises this daemon's lease to `lease`, or to what is left of the limit, and answers which it became; never lowers it. Durable when it
   * resolves.
   */
  raise(account: {
    readonly key: string;
    readonly lease: number;
    readonly limit: number;
  }): Promise<StoredAccount & { readonly lease: number }>;
  /** Removes some of what was last changed before then, longer ago than any period; where to go on, or null. */
  forget(before: string, after: string): Promise<string | null>;
  /** Charges the leases that dead daemons left behind, and names them. */
  recover(): Promise<readonly { readonly key: string; readonly charged: number }[]>;
}
