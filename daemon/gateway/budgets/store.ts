// What budgets keep beyond a restart, as an interface: daemon/storage/repositories/budget.ts satisfies it.

/** What one account has used up, as stored. Amounts are whole pico-dollars. */
export interface StoredAccount {
  readonly key: string;
  readonly spent: number;
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
  load(keys: readonly string[]): Promise<readonly StoredAccount[]>;
  /** Durable when it resolves. */
  change(changes: readonly AccountChange[]): Promise<void>;
  /** Charges the leases that a dead daemon left behind, and names them. */
  recover(): Promise<readonly { readonly key: string; readonly charged: number }[]>;
}
