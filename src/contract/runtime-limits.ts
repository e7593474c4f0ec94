// What the runtime lets a controller do at the most: the daemon and cells enforce it, and the fakes of magic/sdk/testing do alike.

/** `limits` of a contract that does not name them. */
export const defaultLimits = { timeout_ms: 30_000, memory_mb: 128, concurrency: 16 } as const;

/** UTF-8 bytes of an output. */
export const MAX_OUTPUT = 8 * 1024 * 1024;

/** Keys of one controller and environment, characters of a key and of a value's JSON, and how long a value may be kept. */
export const kvLimits = { keys: 10_000, key: 512, value: 256 * 1024, ttlS: 10 * 366 * 86_400 } as const;

/** Of one request. */
export const MAX_REDIRECTS = 10;

/** Of one query's answer. */
export const MAX_ROWS = 10_000;

/** Options of node:http that choose a connection: the daemon's are the only ones. */
export const CONNECTION_OPTIONS = ["socketPath", "createConnection", "ca", "cert", "key", "pfx"] as const;

/** A list as a parameter of a query is an array to PostgreSQL, which has no more dimensions: what is deeper is JSON. */
export const MAX_DIMENSIONS = 6;
