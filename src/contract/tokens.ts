// Tokens that a vendor replaces while they are in use: who keeps them, and how a worker's process asks for them over IPC.

/** What a vendor's token endpoint gave last. */
export interface KeptToken {
  readonly refresh_token: string;
  readonly access_token: string;
  /** Milliseconds since the epoch; null: until it is refused. */
  readonly expires_at: number | null;
}

/** A turn at a connection's tokens: nobody else refreshes until it is released. */
export interface HeldTokens {
  readonly kept: KeptToken | null;
  /** Resolves when the token is durable: only then may it be used. */
  save(token: KeptToken): Promise<void>;
  release(): void;
}

export interface TokenKeeper {
  /**
   * Waits for its turn. `grant` names the grant: a digest of the refresh token that the configuration holds. `last`: the access token
   * that ended or was refused; who keeps what an authorization in a browser gave gets another one.
   */
  hold(grant: string, last?: string): Promise<HeldTokens>;
  /** Resolves when no turn is held: to end before would lose what a vendor is about to answer. `last`: no more turns are given. */
  idle?(last?: boolean): Promise<void>;
}

/** Worker -> parent; `id` names the turn. */
export type TokenRequest = { readonly type: "token"; readonly id: number } & (
  | { readonly ask: "hold"; readonly grant: string; readonly last?: string | undefined }
  | { readonly ask: "save"; readonly token: KeptToken }
  | { readonly ask: "release" }
);

/** Parent -> worker: the answer to `hold` and to `save`. */
export interface TokenAnswer {
  readonly type: "token";
  readonly id: number;
  readonly kept: KeptToken | null;
  readonly error?: { readonly code: string; readonly message: string };
}
