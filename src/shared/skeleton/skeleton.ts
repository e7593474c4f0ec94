// JSON as text, without its long texts: a prompt is most of a request, and decoding it with JSON.parse and looking for members behind it
// were a third of the cost of forwarding one of 64 kB. What is left, the skeleton, is parsed and looked through; the long texts are found and
// decoded in WebAssembly, and put into the parsed value.
import { isAscii } from "node:buffer";
import { wasm } from "./skim.wasm.ts";

/** Bytes: a shorter text is parsed at once, for a longer one no memory is kept. */
const SHORTEST = 8 * 1024;
const LONGEST = 4 * 1024 * 1024;
/** Characters of a text that is kept until the next one comes. */
const MOST_KEPT = 256 * 1024;

/** A page of WebAssembly's memory: in the first is what the compiler put there. */
const PAGE = 64 * 1024;
const JSON_AT = PAGE;
const SKELETON_AT = JSON_AT + LONGEST + PAGE;
const DECODED_AT = SKELETON_AT + LONGEST + PAGE;
const CUTS_AT = DECODED_AT + LONGEST + PAGE;
/** Numbers of a cut (skim.as.ts), and the bytes in the JSON of the shortest. */
const CUT = 4;
const SHORTEST_CUT = 256;
/** By which what stands for a cut begins, and its length with its quotes. */
const MARK = 0x7f;
const STAND_IN = 6;

/** TypeScript has it among a browser's types alone. */
declare const WebAssembly: {
  readonly Module: new (bytes: Buffer) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
};

interface Skim {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  /** The parameters are skim.as.ts's. */
  skim(json: number, length: number, skeleton: number, decoded: number, cuts: number): number;
  endOfSkeleton(): number;
}

let loaded: { readonly module: Skim; readonly memory: Buffer; readonly cuts: Uint32Array } | undefined;

// What is not touched of the memory costs nothing.
function load(): NonNullable<typeof loaded> {
  const instance = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(wasm, "base64")));
  const module = instance.exports as Skim;
  module.memory.grow(Math.ceil((CUTS_AT + (LONGEST / SHORTEST_CUT) * CUT * 4) / PAGE));
  const { buffer } = module.memory;
  loaded = { module, memory: Buffer.from(buffer), cuts: new Uint32Array(buffer, CUTS_AT) };
  return loaded;
}

/** Holds until the next is made: what was cut out lies in memory that all share. */
export class Skeleton {
  /** JSON. */
  readonly text: string;
  readonly #cuts: number;

  constructor(text: string, cuts: number) {
    this.text = text;
    this.#cuts = cuts;
  }

  /** The value of the whole JSON, of the skeleton's. Recursive: whoever asks knows how deep it goes. */
  restore(parsed: unknown): unknown {
    return this.#cuts === 0 ? parsed : restored(parsed);
  }

  /** The place in the JSON's bytes of a place in the text, which is of ASCII alone. */
  placeInJson(place: number): number {
    if (this.#cuts === 0 || loaded === undefined) return place;
    const { cuts } = loaded;
    let left = 0;
    for (let at = 0; at < this.#cuts * CUT; at += CUT) {
      const start = cuts[at] as number;
      if (start - left >= place) break;
      left += (cuts[at + 1] as number) - start - STAND_IN;
    }
    return place + left;
  }
}

let last: { readonly json: Buffer; readonly skeleton: Skeleton } | null = null;

/** @param json valid UTF-8, which need not be JSON; `ascii`: there is nothing else in it. */
export function skeletonOf(json: Buffer, ascii: boolean): Skeleton {
  last = null;
  const cut = json.length < SHORTEST || json.length > LONGEST ? null : cutOut(json);
  // Read as Latin-1, ASCII costs half.
  const bytes = cut?.skeleton ?? json;
  const plain = ascii || (cut !== null && isAscii(bytes));
  const skeleton = new Skeleton(bytes.toString(plain ? "latin1" : "utf8"), cut?.count ?? 0);
  if (plain && skeleton.text.length <= MOST_KEPT) last = { json, skeleton };
  return skeleton;
}

/**
 * The same again, of a character for each byte, for who looks through the JSON in the turn in which it was parsed: handed on once, since keeping it for
 * the length of a call costs more in the collector than it spares.
 */
export function plainSkeletonOf(json: Buffer): Skeleton {
  const known = last;
  if (known?.json !== json) return new Skeleton(json.toString("latin1"), 0);
  last = null;
  return known.skeleton;
}

function cutOut(json: Buffer): { readonly skeleton: Buffer; readonly count: number } | null {
  const { module, memory } = loaded ?? load();
  memory.set(json, JSON_AT);
  const count = module.skim(JSON_AT, json.length, SKELETON_AT, DECODED_AT, CUTS_AT);
  return count > 0 ? { skeleton: memory.subarray(SKELETON_AT, module.endOfSkeleton()), count } : null;
}

function restored(value: unknown): unknown {
  if (typeof value === "string") return value.charCodeAt(0) === MARK ? cutText(value) : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value))
    for (let i = 0; i < value.length; i++) {
      const whole = restored(value[i]);
      if (whole !== value[i]) value[i] = whole;
    }
  else
    for (const key in value) {
      const member = (value as Record<string, unknown>)[key];
      const whole = restored(member);
      if (whole !== member) (value as Record<string, unknown>)[key] = whole;
    }
  return value;
}

// The mark, then the cut's number: five bits a letter, the lowest first.
function cutText(standIn: string): string {
  const { memory, cuts } = loaded as NonNullable<typeof loaded>;
  const bits = (letter: number) => standIn.charCodeAt(letter) & 31;
  const at = (bits(1) | (bits(2) << 5) | (bits(3) << 10)) * CUT;
  return memory.toString("utf8", cuts[at + 2], cuts[at + 3]);
}
