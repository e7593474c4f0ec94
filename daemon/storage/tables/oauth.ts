/** An authorization that was begun and not yet come back. */
export interface OAuthStateTable {
  /** SHA-256 of the state, hex: the state itself is known to the browser alone. */
  readonly id: string;
  /** Sealed JSON. */
  readonly payload: string;
  /** Milliseconds since the epoch. */
  readonly expires_at: number;
}

export interface OAuthTables {
  readonly oauth_state: OAuthStateTable;
}
