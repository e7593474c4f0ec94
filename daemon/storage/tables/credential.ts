/** API keys, clients and gateway tokens: one table, since they are made, rolled and revoked alike. */
export interface CredentialTable {
  readonly id: string;
  /** key, client, token */
  readonly kind: string;
  readonly environment: string;
  readonly tier: string;
  readonly name: string;
  /** JSON: a list of scopes. */
  readonly scopes: string;
  /** JSON: what a gateway token says about its holder; null for the others. */
  readonly gateway: string | null;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
}

/** A credential has one secret, two while it is being rolled. */
export interface CredentialSecretTable {
  readonly id: string;
  readonly credential: string;
  /** SHA-256 of the secret's text. */
  readonly digest: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
  /** The end of the overlap; null for the newest secret. */
  readonly expires_at: string | null;
}

export interface CredentialTables {
  readonly credential: CredentialTable;
  readonly credential_secret: CredentialSecretTable;
}
