// What a mock vendor is: a description of one API as its documentation has it, written without a look at our definition of it. The server
// (serve.ts) answers from it, strictly; the examination (exam.ts) compares what a connector reads with what it says.

export interface Ask {
  readonly method: string;
  /** As the connector meant it: the vendor's host, https. */
  readonly url: URL;
  readonly query: URLSearchParams;
  /** What the `:names` of the collection's address stand for here. */
  readonly path: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** A JSON body, parsed; undefined where there is none. */
  readonly body: unknown;
  readonly form: URLSearchParams;
}

/** A query parameter by its name, or a place elsewhere. A function may throw: the vendor then answers 400 with the message. */
export type Where =
  | string
  | { readonly body: string }
  | { readonly form: string }
  | { readonly header: string }
  | { readonly path: string }
  | ((ask: Ask) => string | undefined);

export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export type Rec = Readonly<Record<string, unknown>>;

/** The n-th record of a collection, from 1: the higher, the later. */
export interface Item {
  /** Unique in the collection, in children of different parents too. */
  readonly n: number;
  /** When it was last changed: whole seconds. */
  readonly time: Date;
  /** The parent's record; {} where there is no parent. */
  readonly parent: Rec;
}

export interface PageOf {
  readonly records: readonly Rec[];
  /** What the next request must say (a cursor, a number); null on the last page. */
  readonly next: string | null;
  /** This request's URL with `next` in its place; null on the last page, or where `next` is no query parameter. */
  readonly nextUrl: string | null;
  readonly total: number;
  readonly offset: number;
  readonly size: number;
  /** The page's number, from 1. */
  readonly number: number;
  readonly ask: Ask;
}

interface Sized {
  /** Where the size is asked for; absent: the vendor does not let one choose. */
  readonly size?: Where;
  /** Records a page when nothing is asked. */
  readonly default: number;
  /** More is refused; absent: `default`. */
  readonly max?: number;
}

export type Pages =
  /** The vendor gives everything at once. */
  | { readonly kind: "none" }
  | ({ readonly kind: "offset"; readonly at: Where } & Sized)
  | ({ readonly kind: "number"; readonly at: Where; readonly first?: number } & Sized)
  /** An opaque cursor that the vendor made: in the body, in a next URL, in a Link header, as `answer` writes it. */
  | ({ readonly kind: "cursor"; readonly at: Where } & Sized)
  /** The last record's key: `starting_after=ID`. */
  | ({ readonly kind: "after"; readonly at: Where; readonly key: (record: Rec) => string } & Sized);

export interface Filter {
  readonly at: Where;
  /** The text as milliseconds, or as `by` counts. A reader of this file (`isoTime`...) or a function that throws what is wrong. */
  readonly read: (text: string) => number;
  /** True unless the vendor compares strictly. */
  readonly inclusive?: boolean;
  /** What is compared; the item's time in milliseconds unless told otherwise. */
  readonly by?: (item: Item) => number;
}

export interface Collection {
  /** Where it is: `https://api.example.com/v1/boards/:board/items`. */
  readonly url: string;
  readonly method?: "GET" | "POST";
  /** Where one address has several collections (GraphQL, a `type` parameter): is it this one? */
  readonly when?: (ask: Ask) => boolean;
  /** Query parameters that a request must have, and how they look. */
  readonly params?: Readonly<Record<string, string | RegExp>>;
  /** Query parameters that a request may have besides; anything else is refused. */
  readonly optional?: readonly string[];
  /** Headers that a request must have. */
  readonly headers?: Readonly<Record<string, string | RegExp>>;
  /** What is wrong with the body, if anything is. */
  readonly body?: (body: Record<string, unknown>, ask: Ask) => string | undefined;
  /** It belongs to the records of another collection: which parent a request names, and which record that is. */
  readonly parent?: { readonly of: string; readonly at: Where; readonly key: (record: Rec) => string };
  /** How many of its records the children of others are made for; two where nothing is said. */
  readonly parents?: number;
  readonly pages: Pages;
  /** Where following pages live somewhere else: an address with `:cursor` in it. */
  readonly more?: string;
  /** The lower bound by time, where the API has one: the stream must be incremental then. */
  readonly since?: Filter;
  readonly until?: Filter;
  /** The order in which records come. */
  readonly order?: "oldest first" | "newest first";
  readonly record: (item: Item) => Rec;
  readonly answer: (page: PageOf) => Answer | Rec | readonly unknown[];
  /** What the connector must print for a record, where its definition changes records on purpose. */
  readonly expect?: (record: Rec, parent: Rec) => Rec;
}

export interface Auth {
  accepts(ask: Ask): boolean;
  /** Query parameters that it takes. */
  readonly params?: readonly string[];
  /** An answer where the request is for the authentication itself: a token endpoint, a login. */
  endpoint?(ask: Ask): Answer | undefined;
}

export interface Vendor {
  /** The pages that it is written from. */
  readonly documentation: readonly string[];
  /** The configuration that the connector is examined with: credentials as `auth` takes them, ids as the addresses have them. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly auth: Auth;
  /** The answer to wrong credentials. */
  readonly unauthorized: Answer;
  /** The answer to too many requests, and the seconds that it asks to wait. */
  readonly limited: Answer & { readonly seconds: number };
  /** By the stream's name in our definition: every stream must be here. */
  readonly collections: Readonly<Record<string, Collection>>;
}

/** 429 with Retry-After in seconds, the commonest form. */
export const retryAfter = (body: unknown, seconds = 7): Vendor["limited"] => ({
  status: 429,
  headers: { "retry-after": String(seconds) },
  body,
  seconds,
});

/** An Answer with headers and the body: what a Link header needs. */
export const linked = (page: PageOf, body: unknown): Answer => ({
  body,
  headers: page.nextUrl === null ? {} : { link: `<${page.nextUrl}>; rel="next"` },
});

// Times as vendors write them.
export const iso = (time: Date): string => time.toISOString().replace(/\.000Z$/, "Z");
export const isoMs = (time: Date): string => time.toISOString();
export const seconds = (time: Date): number => Math.floor(time.getTime() / 1000);
export const day = (time: Date): string => time.toISOString().slice(0, 10);

// Times as vendors read them; anything else is refused.
function read(form: RegExp, what: string, value: (text: string) => number): (text: string) => number {
  return (text) => {
    const at = form.test(text) ? value(text) : Number.NaN;
    if (Number.isNaN(at)) throw new Error(`'${text}' is no ${what}`);
    return at;
  };
}
export const isoTime = read(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$/, "RFC 3339 time", Date.parse);
export const secondsTime = read(/^\d{9,10}(\.\d+)?$/, "Unix time in seconds", (text) => Number(text) * 1000);
export const millisTime = read(/^\d{12,13}$/, "Unix time in milliseconds", Number);
