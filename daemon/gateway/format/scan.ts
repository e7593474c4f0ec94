// A structural scan of a JSON body's bytes, without parsing it: how deep it nests, how many containers it has, and where its top-level
// members lie. Depth and count are checked before JSON.parse allocates for them; the places let `forward.ts` exchange one member
// (the model's name) in the client's own bytes instead of serialising the whole body again.

export interface Member {
  /** First byte of the key's opening quote, and of the value; end is one past the value's last byte. */
  readonly keyStart: number;
  readonly start: number;
  readonly end: number;
}

export interface BodyScan {
  readonly depth: number;
  readonly containers: number;
  /** Top-level members by their decoded key. */
  readonly members: ReadonlyMap<string, Member>;
  /** A key that stands twice: readers differ in which one they believe, so such a body is never forwarded as it is. */
  readonly duplicate: boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Scans up to `maxDepth` levels (deeper: returns with that depth at once). Well-formedness is left to JSON.parse. */
export function scanBody(body: Buffer, maxDepth: number): BodyScan {
  const members = new Map<string, Member>();
  let duplicate = false;
  let depth = 0;
  let deepest = 0;
  let containers = 0;
  let keyStart = -1;
  let keyEnd = -1;
  let valueStart = -1;
  let lastByte = -1;

  const close = () => {
    if (keyStart >= 0 && valueStart >= 0) {
      const key = decodeKey(body, keyStart, keyEnd);
      if (members.has(key)) duplicate = true;
      members.set(key, { keyStart, start: valueStart, end: lastByte + 1 });
    }
    keyStart = -1;
    valueStart = -1;
  };

  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
    if (byte === QUOTE) {
      const end = stringEnd(body, i);
      if (depth === 1) {
        if (keyStart < 0) {
          keyStart = i;
          keyEnd = end;
        } else if (valueStart < 0) valueStart = i;
      }
      i = end - 1;
      lastByte = i;
      continue;
    }
    if (byte === 0x7b || byte === 0x5b) {
      if (depth === 1 && keyStart >= 0 && valueStart < 0) valueStart = i;
      depth++;
      containers++;
      if (depth > deepest) deepest = depth;
      if (depth > maxDepth) break;
    } else if (byte === 0x7d || byte === 0x5d) {
      if (depth === 1) close();
      depth--;
    } else if (depth === 1) {
      if (byte === 0x2c) {
        close();
        continue;
      }
      if (byte !== 0x3a && keyStart >= 0 && valueStart < 0) valueStart = i;
    }
    lastByte = i;
  }
  return { depth: deepest, containers, members, duplicate };
}

// One past the closing quote of the string that opens at `open`; the body's length when it never closes.
function stringEnd(body: Buffer, open: number): number {
  for (let from = open + 1; ; ) {
    const at = body.indexOf(QUOTE, from);
    if (at < 0) return body.length;
    let slashes = 0;
    while (body[at - 1 - slashes] === BACKSLASH && at - 1 - slashes > open) slashes++;
    if (slashes % 2 === 0) return at + 1;
    from = at + 1;
  }
}

function decodeKey(body: Buffer, start: number, end: number): string {
  const text = body.toString("utf8", start, end);
  if (!text.includes("\\")) return text.slice(1, -1);
  try {
    return JSON.parse(text) as string;
  } catch {
    return text;
  }
}
