// MySQL keeps a geometry's reference system (4 bytes) before its WKB; PostGIS's extended WKB has it after the type, flagged there.
// Without a system: WKB.

const FLAG = 0x20000000;

/** A stored geometry as WKB, extended where it has a reference system. */
export function extendedWkb(stored: Buffer): Buffer {
  const system = stored.readUInt32LE(0);
  const wkb = stored.subarray(4);
  if (system === 0 || wkb.length < 5) return wkb;
  const head = Buffer.alloc(9);
  head[0] = wkb[0] ?? 1;
  writeUint(head, (readUint(wkb, 1) | FLAG) >>> 0, 1);
  writeUint(head, system, 5);
  return Buffer.concat([head, wkb.subarray(5)]);
}

/** The other way; what is no WKB is for the server to refuse. */
export function storedGeometry(wkb: Uint8Array): Buffer {
  const bytes = Buffer.from(wkb);
  const system = Buffer.alloc(4);
  const flagged = bytes.length >= 9 && (readUint(bytes, 1) & FLAG) !== 0;
  if (!flagged) return Buffer.concat([system, bytes]);
  system.writeUInt32LE(readUint(bytes, 5));
  const head = Buffer.from(bytes.subarray(0, 5));
  writeUint(head, (readUint(bytes, 1) & ~FLAG) >>> 0, 1);
  return Buffer.concat([system, head, bytes.subarray(9)]);
}

// In the byte order that the WKB's first byte names.
function readUint(wkb: Buffer, at: number): number {
  return wkb[0] === 1 ? wkb.readUInt32LE(at) : wkb.readUInt32BE(at);
}

function writeUint(wkb: Buffer, value: number, at: number): void {
  if (wkb[0] === 1) wkb.writeUInt32LE(value, at);
  else wkb.writeUInt32BE(value, at);
}
