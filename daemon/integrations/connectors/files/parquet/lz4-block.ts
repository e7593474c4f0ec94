// Decodes an LZ4 block (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md), which Parquet calls LZ4_RAW.

/** The block's bytes, `size` of them; throws where it is broken. */
export function lz4Block(input: Uint8Array, size: number): Uint8Array {
  const output = new Uint8Array(size);
  let from = 0;
  let to = 0;
  const length = (start: number) => {
    let sum = start;
    if (start === 15)
      for (let byte = 255; byte === 255; sum += byte) {
        if (from >= input.length) throw new Error("the LZ4 block ends too early");
        byte = input[from++] as number;
      }
    return sum;
  };
  while (from < input.length) {
    const token = input[from++] as number;
    const literals = length(token >> 4);
    if (from + literals > input.length || to + literals > size) throw new Error("the LZ4 block is broken");
    output.set(input.subarray(from, from + literals), to);
    from += literals;
    to += literals;
    // The last sequence has literals only.
    if (from >= input.length) break;
    const offset = (input[from] as number) | ((input[from + 1] ?? 0) << 8);
    from += 2;
    const matched = length(token & 15) + 4;
    if (offset === 0 || offset > to || to + matched > size) throw new Error("the LZ4 block is broken");
    // Byte by byte where the match reaches into itself.
    if (offset >= matched) output.copyWithin(to, to - offset, to - offset + matched);
    else for (let at = 0; at < matched; at++) output[to + at] = output[to + at - offset] as number;
    to += matched;
  }
  if (to !== size) throw new Error("the LZ4 block is broken");
  return output;
}
