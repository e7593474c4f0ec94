// Spans of a request: kept per request_id for GET /v1/traces/:request_id and handed to a sink in batches, to be stored.
// Ids and the traceparent header follow W3C Trace Context (level 1, section 3.2).
import { type Clock, rfc3339, systemClock } from "#shared/clock.ts";
import { randomHex } from "#shared/ids.ts";

export type Attributes = Readonly<Record<string, string | number | boolean | null>>;

/** A finished span, as stored and as answered. */
export interface SpanRecord {
  readonly request_id: string;
  readonly trace_id: string;
  readonly span_id: string;
  /** May be the caller's own span. */
  readonly parent_span_id: string | null;
  /** The request as it came in, or something done for it. */
  readonly kind: "server" | "client";
  readonly name: string;
  readonly started_at: string;
  readonly duration_ms: number;
  readonly status: "ok" | "error";
  readonly attributes: Attributes;
}

export interface Span {
  readonly requestId: string;
  readonly traceId: string;
  readonly spanId: string;
  /** The header value by which a call made inside this span names it as its parent. */
  readonly traceparent: string;
  set(attributes: Attributes): void;
  child(name: string, attributes?: Attributes): Span;
  /** Ends the span; a second call does nothing. Attributes that cost something to make come as a function: most are never looked at. */
  end(status?: "ok" | "error", attributes?: Attributes | (() => Attributes)): void;
}

export interface SpanStart {
  readonly requestId: string;
  /** An incoming traceparent header; ignored when malformed. */
  readonly traceparent?: string | undefined;
  readonly parent?: Span | undefined;
  readonly attributes?: Attributes;
}

/** A finished span that is kept: its record is made when somebody wants it. */
export interface EndedSpan {
  readonly requestId: string;
  readonly status: "ok" | "error";
  record(): SpanRecord;
}

export type SpanSink = (spans: readonly EndedSpan[]) => Promise<void>;

export interface Tracer {
  start(name: string, options: SpanStart): Span;
  /** The finished spans of a request that are still held in memory, in the order in which they began. */
  spansOf(requestId: string): readonly SpanRecord[];
  /** Hands finished spans on in batches, about once a second; replaces an earlier sink. */
  onBatch(sink: SpanSink): void;
  flush(): Promise<void>;
}

/** Requests of one generation; the last two generations are held. Of those that begin in one second, as many are kept whatever becomes of them. */
const MAX_REQUESTS = 1_000;
const MAX_SPANS_PER_REQUEST = 200;
const MAX_BATCH = 5_000;

export function createTracer(options: { readonly clock?: Clock; readonly intervalMs?: number } = {}): Tracer {
  const { clock = systemClock, intervalMs = 1_000 } = options;
  let newer = new Map<string, EndedSpan[]>();
  let older = new Map<string, EndedSpan[]>();
  let batch: EndedSpan[] = [];
  let sink: SpanSink | undefined;
  let timer: NodeJS.Timeout | undefined;

  let second = 0;
  let begun = 0;

  // Under more load the others are kept only if something in them fails: what is not kept costs next to nothing.
  const wanted = (now: number): boolean => {
    const current = Math.floor(now / 1_000);
    if (current !== second) {
      second = current;
      begun = 0;
    }
    return ++begun <= MAX_REQUESTS;
  };

  const spansHeld = (requestId: string): EndedSpan[] => {
    const known = newer.get(requestId) ?? older.get(requestId);
    if (known) return known;
    if (newer.size >= MAX_REQUESTS) {
      older = newer;
      newer = new Map();
    }
    const spans: EndedSpan[] = [];
    newer.set(requestId, spans);
    return spans;
  };

  const keep = (span: EndedSpan) => {
    const spans = spansHeld(span.requestId);
    if (spans.length >= MAX_SPANS_PER_REQUEST) return;
    spans.push(span);
    if (!sink || batch.length >= MAX_BATCH) return;
    batch.push(span);
    timer ??= setTimeout(() => void flush(), intervalMs).unref();
  };

  const flush = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const spans = batch;
    batch = [];
    // A batch that cannot be stored is given up: traces must not fill the memory of a daemon whose disk is full.
    if (spans.length > 0) await sink?.(spans).catch(() => undefined);
  };

  return {
    start(name, from) {
      const now = clock.monotonic();
      const family = familyOf(from.parent) ?? new Family(clock, now, keep, wanted(now));
      return new OpenSpan(name, from, family, now);
    },
    spansOf: (requestId) =>
      [...(older.get(requestId) ?? []), ...(newer.get(requestId) ?? [])]
        .map((span) => span.record())
        .sort((a, b) =>
          a.started_at < b.started_at ? -1 : a.started_at > b.started_at ? 1 : b.duration_ms - a.duration_ms,
        ),
    onBatch(next) {
      sink = next;
    },
    flush,
  };
}

/**
 * What the spans of one request share. A class with a chain, because V8 learns to make literals that often live long in old memory: the
 * array of a family that is not kept would hold the whole request there until the next full collection.
 */
class Family {
  readonly clock: Clock;
  /** What makes a moment of the monotonic clock one of the wall's, as it was when the first of them began. */
  readonly toWall: number;
  readonly keep: (span: EndedSpan) => void;
  /** Once a span has failed: all of them, those that ended before it too. */
  kept: boolean;
  /** Of those that are not kept (yet): the one that ended last, and how many there are. */
  last: OpenSpan | undefined;
  ended = 0;

  constructor(clock: Clock, now: number, keep: (span: EndedSpan) => void, kept: boolean) {
    this.clock = clock;
    this.toWall = clock.now() - now;
    this.keep = keep;
    this.kept = kept;
  }
}

function familyOf(parent: Span | undefined): Family | undefined {
  return parent instanceof OpenSpan ? parent.family : undefined;
}

// A class, because each call of the gateway makes two of them: methods that every span shares cost nothing to make.
class OpenSpan implements Span, EndedSpan {
  readonly requestId: string;
  readonly family: Family;
  status: "ok" | "error" = "ok";
  readonly #name: string;
  readonly #parent: Span | undefined;
  readonly #incoming: { readonly traceId: string; readonly spanId: string } | undefined;
  #traceId: string | undefined;
  #spanId: string | undefined;
  readonly #began: number;
  #ended = -1;
  /** The span of its family that ended before it, while neither is kept. */
  #before: OpenSpan | undefined;
  #attributes: Attributes;
  #more: Attributes | (() => Attributes) = none;

  constructor(name: string, from: SpanStart, family: Family, now: number) {
    this.requestId = from.requestId;
    this.family = family;
    this.#parent = from.parent;
    this.#incoming = from.parent ? undefined : parseTraceparent(from.traceparent);
    this.#name = name;
    this.#began = now;
    this.#attributes = from.attributes ?? none;
  }

  // Drawn when first asked for: most spans are never looked at.
  get traceId(): string {
    this.#traceId ??= this.#parent?.traceId ?? this.#incoming?.traceId ?? randomHex(16);
    return this.#traceId;
  }

  get spanId(): string {
    this.#spanId ??= randomHex(8);
    return this.#spanId;
  }

  get traceparent(): string {
    return `00-${this.traceId}-${this.spanId}-01`;
  }

  set(attributes: Attributes): void {
    this.#attributes = { ...this.#attributes, ...attributes };
  }

  child(name: string, attributes: Attributes = none): Span {
    const { requestId, family } = this;
    return new OpenSpan(name, { requestId, parent: this, attributes }, family, family.clock.monotonic());
  }

  end(status: "ok" | "error" = "ok", attributes: Attributes | (() => Attributes) = none): void {
    if (this.#ended >= 0) return;
    const { family } = this;
    this.#ended = family.clock.monotonic();
    this.status = status;
    this.#more = attributes;
    if (!family.kept) {
      if (status === "ok") {
        if (++family.ended > MAX_SPANS_PER_REQUEST) return;
        this.#before = family.last;
        family.last = this;
        return;
      }
      family.kept = true;
      for (let earlier = family.last; earlier; earlier = earlier.#before) earlier.#keep();
      family.last = undefined;
    }
    this.#keep();
  }

  // What the attributes are made of (a call with its body) must not be held as long as the span.
  #keep(): void {
    if (typeof this.#more === "function") this.#more = this.#more();
    this.family.keep(this);
  }

  record(): SpanRecord {
    return {
      request_id: this.requestId,
      trace_id: this.traceId,
      span_id: this.spanId,
      parent_span_id: this.#parent?.spanId ?? this.#incoming?.spanId ?? null,
      kind: this.#parent ? "client" : "server",
      name: this.#name,
      started_at: rfc3339(this.family.toWall + this.#began),
      duration_ms: Math.round((this.#ended - this.#began) * 1000) / 1000,
      status: this.status,
      attributes: { ...this.#attributes, ...this.#more },
    };
  }
}

const none: Attributes = {};

/** The ids in a traceparent header, or undefined when it is not well-formed. */
function parseTraceparent(value: string | undefined): { traceId: string; spanId: string } | undefined {
  if (value === undefined) return undefined;
  // Only a later version than ours may have more behind its flags.
  const match = /^(?!ff|00-.{53})[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(?:-.*)?$/.exec(value);
  const [, traceId, spanId] = match ?? [];
  if (!traceId || !spanId || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId };
}
