// A small assembler for classic BPF as seccomp runs it: instructions with labels in, the kernel's 8-byte records out.
// Facts: linux/filter.h, linux/seccomp.h (struct seccomp_data: nr @0, arch @4, instruction pointer @8, args @16).

const opcode = {
  load: 0x20,
  jumpEqual: 0x15,
  jumpGreaterOrEqual: 0x35,
  and: 0x54,
  return: 0x06,
} as const;

export const offset = {
  number: 0,
  architecture: 4,
  /** Low and high half of argument `i`; both architectures are little-endian. */
  argument: (i: number, half: "low" | "high" = "low"): number => 16 + i * 8 + (half === "high" ? 4 : 0),
} as const;

export const action = {
  allow: 0x7fff0000,
  /** SECCOMP_RET_KILL_PROCESS */
  kill: 0x80000000,
  /** The call does nothing and returns -errno. */
  errno: (number: number): number => 0x00050000 | number,
} as const;

/** `k` is the operand; `yes` and `no` are labels, undefined falls through. */
export interface Instruction {
  readonly code: number;
  readonly k: number;
  readonly yes?: string | undefined;
  readonly no?: string | undefined;
}

export type Line = Instruction | { readonly label: string };

export const load = (k: number): Line => ({ code: opcode.load, k });
export const and = (k: number): Line => ({ code: opcode.and, k });
export const answer = (k: number): Line => ({ code: opcode.return, k });
export const label = (name: string): Line => ({ label: name });
export const ifEqual = (k: number, yes?: string, no?: string): Line => ({ code: opcode.jumpEqual, k, yes, no });
export const ifAtLeast = (k: number, yes?: string, no?: string): Line => ({
  code: opcode.jumpGreaterOrEqual,
  k,
  yes,
  no,
});

/** The program in the kernel's form. Throws where a jump leaves its 8-bit forward range. */
export function assemble(lines: readonly Line[]): Buffer {
  const labels = new Map<string, number>();
  const instructions: Instruction[] = [];
  for (const line of lines) {
    if ("label" in line) labels.set(line.label, instructions.length);
    else instructions.push(line);
  }
  const program = Buffer.alloc(instructions.length * 8);
  for (const [index, { code, k, yes, no }] of instructions.entries()) {
    const distance = (name: string | undefined): number => {
      if (name === undefined) return 0;
      const jump = (labels.get(name) ?? Number.NaN) - index - 1;
      if (!(jump >= 0 && jump < 256)) throw new Error(`BPF jump to ${name} is out of range: ${jump}`);
      return jump;
    };
    program.writeUInt16LE(code, index * 8);
    program[index * 8 + 2] = distance(yes);
    program[index * 8 + 3] = distance(no);
    program.writeUInt32LE(k >>> 0, index * 8 + 4);
  }
  return program;
}
