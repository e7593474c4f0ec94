/** The keys of access tokens; the private half is sealed. */
export interface SigningKeyTable {
  readonly kid: string;
  readonly created_at: string;
  readonly retires_at: string | null;
  readonly public_jwk: string;
  readonly private_sealed: string;
}

export interface SigningKeyTables {
  readonly signing_key: SigningKeyTable;
}
