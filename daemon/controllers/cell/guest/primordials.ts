// Built-ins as they were before any controller's code ran. The channel, the codec and the invocations use these and nothing that a handler
// could have replaced since: a handler that patches JSON.parse must not see the calls of its neighbours.

const { apply } = Reflect;

/** The method as a function that takes `this` first; later patches of the prototype do not reach it. */
function uncurry<This, Args extends unknown[], Result>(
  method: (this: This, ...args: Args) => Result,
): (self: This, ...args: Args) => Result {
  return (self, ...args) => apply(method, self, args);
}

export const parseJson: (text: string) => unknown = JSON.parse;
export const stringifyJson: (
  value: unknown,
  replacer?: (this: unknown, key: string, value: unknown) => unknown,
) => string | undefined = JSON.stringify;
export const min = Math.min;
/** Monotonic milliseconds. */
export const now: () => number = performance.now.bind(performance);
const createNull = Object.create as (prototype: null) => Record<string, never>;
export const defineProperty = Object.defineProperty;
export const StringOf = String;
export const ErrorOf = Error;
export const PromiseOf = Promise;
export const Uint8ArrayOf = Uint8Array;
export const AbortControllerOf = AbortController;
export const ReadableStreamOf = ReadableStream;
export const RequestOf = Request;
export const ResponseOf = Response;
export const BlobOf = Blob;
/** Node's own, before the realm has another. */
export const fetchOf = fetch;
export const responseClone = uncurry(Response.prototype.clone) as (self: Response) => Response;
export const asyncIterator: typeof Symbol.asyncIterator = Symbol.asyncIterator;

export const bytesSet = uncurry(Uint8Array.prototype.set) as (self: Uint8Array, from: Uint8Array, at?: number) => void;
export const stringSlice = uncurry(String.prototype.slice);

/** A buffer of its own: the pool behind Buffer.allocUnsafe is one that handlers can read. */
export const allocate: (size: number) => Buffer = Buffer.allocUnsafeSlow;
export const byteLength: (text: string) => number = Buffer.byteLength;
export const bufferOver: (memory: ArrayBufferLike, offset: number, length: number) => Buffer = Buffer.from as never;

interface Utf8Methods {
  utf8Slice(start: number, end: number): string;
  utf8Write(text: string, offset: number, length: number): number;
}
const utf8Methods = Buffer.prototype as unknown as Utf8Methods;
export const utf8Slice = uncurry(utf8Methods.utf8Slice) as (self: Buffer, start: number, end: number) => string;
export const utf8Write = uncurry(utf8Methods.utf8Write) as (
  self: Buffer,
  text: string,
  offset: number,
  length: number,
) => number;

const MapOf = Map;
const mapGet = uncurry(Map.prototype.get);
const mapSet = uncurry(Map.prototype.set);

/** What was put under an object. */
export function mapOf<K extends object, V>(): { get(key: K): V | undefined; set(key: K, value: V): void } {
  const map = new MapOf<K, V>();
  return { get: (key) => mapGet(map, key) as V | undefined, set: (key, value) => void mapSet(map, key, value) };
}

/** A table by number that inherits nothing. */
export function table<T>(): Record<number, T> {
  return createNull(null) as Record<number, T>;
}
