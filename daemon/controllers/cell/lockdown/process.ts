// Starts processes by libc's posix_spawn. Node's own spawn copies the daemon's page tables and makes its thread wait for it: 15 to 25 ms for
// a daemon of 150 MB, during which nobody is answered. Beside kernel.ts the only file with foreign function calls.
import * as ffi from "node:ffi";
import { closeSync } from "node:fs";

export interface Started {
  readonly pid: number;
  /** Our end of the socket that is the process's descriptor 3. */
  readonly channel: number;
  /** Where its descriptor 2 can be read. */
  readonly errors: number;
}

export interface Ended {
  /** Null where a signal ended it. */
  readonly code: number | null;
  readonly signal: number | null;
}

export interface Processes {
  /** In a session of its own, in the root folder, descriptors 0 and 1 at /dev/null. Throws where there is no process to be had. */
  start(file: string, args: readonly string[], env: Readonly<Record<string, string>>): Started;
  /** Takes the dead process away, once; null while it lives. */
  reap(pid: number): Ended | null;
}

const SETSID = 0x80;
const WNOHANG = 1;
const O_RDWR = 2;
const CLOSE_ON_EXEC = 0x80000; // O_CLOEXEC and SOCK_CLOEXEC
const AF_UNIX = 1;
const SOCK_STREAM = 1;
/** More than any libc's posix_spawn_file_actions_t and posix_spawnattr_t. */
const OPAQUE = 1024;

/** Throws where libc lacks one of the functions. */
export function openProcesses(): Processes {
  const int = "int32";
  const pointer = "uint64";
  const { functions: libc } = ffi.dlopen(null, {
    posix_spawn: { arguments: [pointer, pointer, pointer, pointer, pointer, pointer], return: int },
    posix_spawnattr_init: { arguments: [pointer], return: int },
    posix_spawnattr_setflags: { arguments: [pointer, "int16"], return: int },
    posix_spawnattr_destroy: { arguments: [pointer], return: int },
    posix_spawn_file_actions_init: { arguments: [pointer], return: int },
    posix_spawn_file_actions_addopen: { arguments: [pointer, int, pointer, int, "uint32"], return: int },
    posix_spawn_file_actions_adddup2: { arguments: [pointer, int, int], return: int },
    posix_spawn_file_actions_addchdir_np: { arguments: [pointer, pointer], return: int },
    posix_spawn_file_actions_destroy: { arguments: [pointer], return: int },
    socketpair: { arguments: [int, int, int, pointer], return: int },
    pipe2: { arguments: [pointer, int], return: int },
    waitpid: { arguments: [int, pointer, int], return: int },
  });
  /** What libc holds pointers to, until the call is over. */
  const held: Buffer[] = [];
  const at = (memory: Buffer): bigint => {
    held.push(memory);
    return ffi.getRawPointer(memory);
  };
  const text = (value: string): bigint => at(Buffer.from(`${value}\0`));
  const texts = (values: readonly string[]): bigint => {
    const list = Buffer.alloc(8 * (values.length + 1));
    for (const [n, value] of values.entries()) list.writeBigUInt64LE(text(value), 8 * n);
    return at(list);
  };

  function pair(name: string, open: (descriptors: bigint) => number): [number, number] {
    const descriptors = Buffer.alloc(8);
    if (open(at(descriptors)) !== 0) throw new Error(`${name} failed`);
    return [descriptors.readInt32LE(0), descriptors.readInt32LE(4)];
  }

  function spawn(
    file: string,
    args: readonly string[],
    env: readonly string[],
    channel: number,
    errors: number,
  ): number {
    const actions = at(Buffer.alloc(OPAQUE));
    const attributes = at(Buffer.alloc(OPAQUE));
    const pid = Buffer.alloc(4);
    libc.posix_spawn_file_actions_init(actions);
    libc.posix_spawnattr_init(attributes);
    try {
      libc.posix_spawnattr_setflags(attributes, SETSID);
      libc.posix_spawn_file_actions_addopen(actions, 0, text("/dev/null"), O_RDWR, 0);
      libc.posix_spawn_file_actions_adddup2(actions, 0, 1);
      libc.posix_spawn_file_actions_adddup2(actions, errors, 2);
      libc.posix_spawn_file_actions_adddup2(actions, channel, 3);
      libc.posix_spawn_file_actions_addchdir_np(actions, text("/"));
      const failed = libc.posix_spawn(at(pid), text(file), actions, attributes, texts([file, ...args]), texts(env));
      if (failed !== 0) throw new Error(`posix_spawn of ${file} failed with errno ${failed}`);
      return pid.readInt32LE(0);
    } finally {
      libc.posix_spawn_file_actions_destroy(actions);
      libc.posix_spawnattr_destroy(attributes);
    }
  }

  return {
    start(file, args, env) {
      const open: number[] = [];
      try {
        const [channel, theirs] = pair("socketpair", (into) =>
          libc.socketpair(AF_UNIX, SOCK_STREAM | CLOSE_ON_EXEC, 0, into),
        );
        open.push(channel, theirs);
        const [errors, written] = pair("pipe2", (into) => libc.pipe2(into, CLOSE_ON_EXEC));
        open.push(errors, written);
        const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
        const pid = spawn(file, args, variables, theirs, written);
        open.splice(0);
        closeSync(theirs);
        closeSync(written);
        return { pid, channel, errors };
      } finally {
        for (const descriptor of open) closeSync(descriptor);
        held.length = 0;
      }
    },
    reap(pid) {
      const status = Buffer.alloc(4);
      const done = libc.waitpid(pid, at(status), WNOHANG);
      held.length = 0;
      if (done === 0) return null;
      // -1: somebody else took it away.
      if (done < 0) return { code: null, signal: null };
      const word = status.readInt32LE(0);
      const signal = word & 0x7f;
      return signal === 0 ? { code: (word >> 8) & 0xff, signal: null } : { code: null, signal };
    },
  };
}
