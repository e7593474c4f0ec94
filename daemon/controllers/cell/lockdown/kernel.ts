// The foreign function calls of the program stand in this file and in process.ts beside it: here libc's syscall() through the built-in
// node:ffi, which is experimental; hence the exact Node version. The cell's two stages load it, and the second one loses it before the
// controller's code runs; the daemon loads it for the standing of its cells' threads.
import * as ffi from "node:ffi";
import { type Architecture, type Syscall, syscallNumber } from "./syscalls.ts";

/** Thrown where the kernel lacks or refuses a call; `errno` as in errno.h. */
class KernelRefused extends Error {
  readonly call: string;
  readonly errno: number;
  constructor(call: string, errno: number) {
    super(`${call} failed with errno ${errno}`);
    this.name = "KernelRefused";
    this.call = call;
    this.errno = errno;
  }
}

const PR_SET_PDEATHSIG = 1;
const PR_SET_DUMPABLE = 4;
const PR_SET_NO_NEW_PRIVS = 38;
const SIGKILL = 9;
const SECCOMP_SET_MODE_FILTER = 1;
const SECCOMP_FILTER_FLAG_TSYNC = 1;
const CLOSE_RANGE_CLOEXEC = 4;
const F_SETFD = 2;
const O_PATH_CLOEXEC = 0x200000 | 0x80000;
const AT_FDCWD = 0xffffff9cn;
/** Bytes of a cpu_set_t: 1,024 processors. */
const PROCESSOR_SET = 128;
const LANDLOCK_RULE_PATH_BENEATH = 1;
/** File system rights that each landlock ABI knows: execute is bit 0, write 1, read file 2, read folder 3. */
const LANDLOCK_RIGHTS = [13, 14, 15, 15, 16, 16, 16] as const;
const EXECUTE = 1n;
const READ_FILE = 4n;
const READ_FOLDER = 8n;

/** Read any file: a daemon that root started may lie in a folder of somebody else's. */
export const CAP_DAC_READ_SEARCH = 1 << 2;

export const resource = { fileSize: 1, data: 2, core: 4, processes: 6, files: 7 } as const;

export interface Kernel {
  /** SIGKILL when the thread that started this process ends. */
  dieWithParent(): void;
  /** No exec, however it is reached, gains a privilege. */
  noNewPrivileges(): void;
  /** Gives every capability up but, for root, those of `keep` (a bit mask of linux/capability.h). This thread and what it starts. */
  dropCapabilities(keep?: number): void;
  /** No core, no ptrace by the same user, /proc/PID belongs to root. */
  notDumpable(): void;
  /** At most `value`; a limit that is lower already stays. */
  limit(which: number, value: number): void;
  /** Only these paths, read and execute, for this thread and what it starts. Returns landlock's ABI; throws where there is none. */
  landlock(readable: readonly string[]): number;
  /** Installs a filter in every thread of the process. */
  seccomp(filter: Buffer): void;
  /** Descriptors from `first` on end at the next exec. */
  closeOnExecFrom(first: number): void;
  keepOverExec(descriptor: number): void;
  /**
   * Sets a thread's nice value and the milliseconds that it asks for at once: who asks for less goes first when it wakes (Linux 6.12;
   * earlier ones know the nice value alone).
   */
  schedule(thread: number, nice: number, sliceMs: number): void;
  /** The numbers of the processors that this thread may run on. */
  processors(): number[];
  /** From now on the thread, and those that it starts, run on these alone. */
  keepTo(processors: readonly number[], thread: number): void;
}

export function openKernel(architecture: Architecture): Kernel {
  const { functions } = ffi.dlopen(null, {
    syscall: { arguments: ["int64", "uint64", "uint64", "uint64", "uint64", "uint64", "uint64"], return: "int64" },
    __errno_location: { arguments: [], return: "pointer" },
  });
  type Argument = number | bigint | Buffer;
  const word = (value: Argument): bigint => (Buffer.isBuffer(value) ? ffi.getRawPointer(value) : BigInt(value));

  function call(name: Syscall, ...given: Argument[]): number {
    const number = syscallNumber(name, architecture);
    if (number === null) throw new KernelRefused(name, 38);
    const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n] = given.map(word);
    const result = Number(functions.syscall(BigInt(number), a, b, c, d, e, f));
    if (result < 0) throw new KernelRefused(name, ffi.getInt32(functions.__errno_location() as unknown as bigint));
    return result;
  }

  function landlock(readable: readonly string[]): number {
    const abi = call("landlock_create_ruleset", 0, 0, 1);
    const rights = LANDLOCK_RIGHTS[Math.min(abi, LANDLOCK_RIGHTS.length) - 1] ?? 13;
    // struct landlock_ruleset_attr: handled file system rights, TCP bind and connect (ABI 4), signals and abstract sockets (ABI 6).
    const attributes = Buffer.alloc(24);
    attributes.writeBigUInt64LE((1n << BigInt(rights)) - 1n, 0);
    if (abi >= 4) attributes.writeBigUInt64LE(3n, 8);
    if (abi >= 6) attributes.writeBigUInt64LE(3n, 16);
    const rules = call("landlock_create_ruleset", attributes, abi >= 6 ? 24 : abi >= 4 ? 16 : 8, 0);
    for (const path of readable) allowReading(rules, path);
    call("landlock_restrict_self", rules, 0);
    call("close", rules);
    return abi;
  }

  function allowReading(rules: number, path: string): void {
    let folder: number;
    try {
      folder = call("openat", AT_FDCWD, Buffer.from(`${path}\0`), O_PATH_CLOEXEC, 0);
    } catch {
      return; // A path that this machine lacks needs no rule.
    }
    const beneath = Buffer.alloc(12);
    beneath.writeInt32LE(folder, 8);
    beneath.writeBigUInt64LE(EXECUTE | READ_FILE | READ_FOLDER, 0);
    try {
      call("landlock_add_rule", rules, LANDLOCK_RULE_PATH_BENEATH, beneath, 0);
    } catch {
      // A file takes no folder rights.
      beneath.writeBigUInt64LE(EXECUTE | READ_FILE, 0);
      call("landlock_add_rule", rules, LANDLOCK_RULE_PATH_BENEATH, beneath, 0);
    } finally {
      call("close", folder);
    }
  }

  return {
    dieWithParent: () => void call("prctl", PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0),
    noNewPrivileges: () => void call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
    dropCapabilities(keep = 0) {
      const header = Buffer.alloc(8);
      header.writeUInt32LE(0x20080522, 0); // _LINUX_CAPABILITY_VERSION_3
      const sets = Buffer.alloc(24); // effective, permitted, inheritable; low words first
      sets.writeUInt32LE(keep, 0);
      sets.writeUInt32LE(keep, 4);
      call("capset", header, sets);
    },
    notDumpable: () => void call("prctl", PR_SET_DUMPABLE, 0, 0, 0, 0),
    limit(which, value) {
      const pair = Buffer.alloc(16);
      call("prlimit64", 0, which, 0, pair);
      // Nobody without a privilege raises the second one, the hard limit.
      const most = pair.readBigUInt64LE(8);
      const bounded = BigInt(value) < most ? BigInt(value) : most;
      pair.writeBigUInt64LE(bounded, 0);
      pair.writeBigUInt64LE(bounded, 8);
      call("prlimit64", 0, which, pair, 0);
    },
    landlock,
    seccomp(filter) {
      // struct sock_fprog: length in instructions, pointer to them.
      const program = Buffer.alloc(16);
      program.writeUInt16LE(filter.length / 8, 0);
      program.writeBigUInt64LE(word(filter), 8);
      const failed = call("seccomp", SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program);
      if (failed !== 0) throw new KernelRefused("seccomp (thread sync)", failed);
    },
    closeOnExecFrom: (first) => void call("close_range", first, 0xffffffff, CLOSE_RANGE_CLOEXEC),
    keepOverExec: (descriptor) => void call("fcntl", descriptor, F_SETFD, 0),
    schedule(thread, nice, sliceMs) {
      // struct sched_attr, first version: size, policy (0, the ordinary one), flags, nice, priority, runtime, deadline, period.
      const attributes = Buffer.alloc(48);
      attributes.writeUInt32LE(attributes.length, 0);
      attributes.writeInt32LE(nice, 16);
      attributes.writeBigUInt64LE(BigInt(sliceMs * 1e6), 24);
      call("sched_setattr", thread, attributes, 0);
    },
    processors() {
      const set = Buffer.alloc(PROCESSOR_SET);
      call("sched_getaffinity", 0, PROCESSOR_SET, set);
      return Array.from({ length: PROCESSOR_SET * 8 }, (_, n) => n).filter((n) => ((set[n >> 3] ?? 0) >> (n & 7)) & 1);
    },
    keepTo(processors, thread) {
      const set = Buffer.alloc(PROCESSOR_SET);
      for (const n of processors) set[n >> 3] = (set[n >> 3] ?? 0) | (1 << (n & 7));
      call("sched_setaffinity", thread, PROCESSOR_SET, set);
    },
  };
}
