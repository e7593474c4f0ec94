// Which system calls a cell may make. Two filters: `earlyFilter` before the real Node starts (it must still open files and start
// threads), `strictFilter` before the controller's code runs. Pure: the same bytes for the same architecture and pid.
import { action, and, answer, assemble, ifAtLeast, ifEqual, type Line, label, load, offset } from "./bpf.ts";
import { type Architecture, type Syscall, syscallNumber } from "./syscalls.ts";

const EPERM = 1;
const EAGAIN = 11;
const EACCES = 13;
const ENOSYS = 38;
const AUDIT_ARCH = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
/** x32 calls carry this bit: same architecture value, other numbers. */
const X32_BIT = 0x40000000;

/** What Node was seen to call after the load, then what other paths of the same libraries and kernels call. */
const allowed: readonly Syscall[] = [
  ...(["read", "write", "close", "epoll_pwait", "epoll_ctl", "fstat", "futex", "munmap", "madvise", "brk"] as const),
  ...(["mprotect", "getpid", "rt_sigprocmask", "sched_getparam", "sched_getscheduler", "uname", "exit"] as const),
  "exit_group",
  // A thread that was cloned before the filter reached it registers itself afterwards: 1 abort in 200 starts without these two.
  ...(["rseq", "set_robust_list"] as const),
  ...(["writev", "epoll_wait", "poll", "ppoll", "mremap", "pkey_mprotect", "gettid", "getrandom"] as const),
  ...(["gettimeofday", "time", "nanosleep"] as const),
  ...(["sched_yield", "sched_getaffinity", "getcpu", "restart_syscall", "rt_sigaction", "rt_sigreturn"] as const),
  ...(["sigaltstack", "getrusage", "membarrier"] as const),
];

/** Refused with an errno that Node's libraries take as an ordinary failure. */
const refused: readonly (readonly [Syscall, number])[] = [
  ...(
    [
      ...(["open", "openat", "openat2", "stat", "lstat", "newfstatat", "statx", "access", "faccessat"] as const),
      ...(["faccessat2", "readlink", "readlinkat", "getcwd", "mkdir", "mkdirat", "unlink", "unlinkat"] as const),
      ...(["rename", "renameat", "renameat2", "socket", "socketpair", "connect", "bind", "listen"] as const),
      ...(["sendto", "sendmsg", "sendmmsg", "recvfrom", "recvmsg", "recvmmsg", "accept", "accept4"] as const),
      ...(["fork", "vfork", "execve", "execveat", "kill", "tkill", "pidfd_open"] as const),
    ] as const
  ).map((name) => [name, EACCES] as const),
  ["clone", EAGAIN],
  ["clone3", ENOSYS],
];

/** Calls that no program in a cell makes by accident: the process ends. */
const deadly: readonly Syscall[] = [
  ...(["ptrace", "process_vm_readv", "process_vm_writev", "bpf", "userfaultfd", "perf_event_open"] as const),
  ...(["io_uring_setup", "io_uring_enter", "io_uring_register", "memfd_create", "memfd_secret"] as const),
  ...(["unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsmount", "fsconfig"] as const),
  ...(["fspick", "move_mount", "open_tree", "mount_setattr", "init_module", "finit_module"] as const),
  ...(["delete_module", "kexec_load", "kexec_file_load", "keyctl", "add_key", "request_key"] as const),
  ...(["pidfd_getfd", "pidfd_send_signal", "personality", "modify_ldt", "iopl", "ioperm", "reboot"] as const),
  ...(["setuid", "setgid", "setresuid", "setresgid", "setreuid", "setregid", "setfsuid", "setfsgid"] as const),
  ...(["setgroups", "capset", "swapon", "open_by_handle_at", "kcmp", "process_madvise"] as const),
  "remap_file_pages",
];

/** Calls that are allowed for some arguments only. */
function argumentChecked(pid: number): readonly (readonly [Syscall, readonly Line[]])[] {
  return [
    // Memory yes, files no: MAP_ANONYMOUS, and of the kinds that RLIMIT_DATA counts: MAP_PRIVATE, not MAP_SHARED or MAP_GROWSDOWN.
    [
      "mmap",
      [load(offset.argument(3)), and(0x12f), ifEqual(0x22, "mmap.ok"), answer(action.errno(EACCES)), ...ok("mmap")],
    ],
    ["tgkill", oneOf("tgkill", 0, [pid])],
    // TCGETS, TIOCGWINSZ, FIONBIO, FIONREAD
    ["ioctl", oneOf("ioctl", 1, [0x5401, 0x5413, 0x5421, 0x541b])],
    // F_GETFD, F_SETFD, F_GETFL, F_SETFL: no duplicate, no owner
    ["fcntl", oneOf("fcntl", 1, [1, 2, 3, 4])],
    // A negative clock is another process's processor time, or a descriptor's.
    ...(["clock_gettime", "clock_getres", "clock_nanosleep"] as const).map(
      (name) =>
        [
          name,
          [
            load(offset.argument(0)),
            ifAtLeast(0x80000000, undefined, `${name}.ok`),
            answer(action.errno(EPERM)),
            ...ok(name),
          ],
        ] as const,
    ),
    // PR_SET_NAME, PR_GET_NAME, PR_SET_VMA
    ["prctl", oneOf("prctl", 0, [15, 16, 0x53564d41])],
    // Reading its own limits: the process is 0, the new-limit pointer null.
    [
      "prlimit64",
      [
        load(offset.argument(0)),
        ifEqual(0, undefined, "prlimit64.no"),
        load(offset.argument(2)),
        ifEqual(0, undefined, "prlimit64.no"),
        load(offset.argument(2, "high")),
        ifEqual(0, undefined, "prlimit64.no"),
        answer(action.allow),
        label("prlimit64.no"),
        answer(action.errno(EPERM)),
      ],
    ],
  ];
}

function ok(name: string): readonly Line[] {
  return [label(`${name}.ok`), answer(action.allow)];
}

/** Allowed where the low half of argument `index` is one of the values. */
function oneOf(name: string, index: number, values: readonly number[]): readonly Line[] {
  const tests = values.map((value) => ifEqual(value, `${name}.ok`));
  return [load(offset.argument(index)), ...tests, answer(action.errno(EPERM)), ...ok(name)];
}

function start(architecture: Architecture): Line[] {
  const lines: Line[] = [
    load(offset.architecture),
    ifEqual(AUDIT_ARCH[architecture], "native"),
    answer(action.kill),
    label("native"),
    load(offset.number),
  ];
  if (architecture === "x64")
    lines.push(ifAtLeast(X32_BIT, undefined, "not-x32"), answer(action.kill), label("not-x32"));
  return lines;
}

function rule(architecture: Architecture, name: Syscall, body: readonly Line[]): Line[] {
  const number = syscallNumber(name, architecture);
  if (number === null) return [];
  return [ifEqual(number, undefined, `after.${name}`), ...body, label(`after.${name}`)];
}

/**
 * Stage 0, before execve: no io_uring (its rings would carry file and network calls past the later filter; libuv falls back to
 * epoll), and nothing of the deadly list. Everything else still works, Node has to start.
 */
export function earlyFilter(architecture: Architecture): Buffer {
  const lines = start(architecture);
  for (const name of ["io_uring_setup", "io_uring_enter", "io_uring_register"] as const)
    lines.push(...rule(architecture, name, [answer(action.errno(ENOSYS))]));
  // capset: stage 1 gives the last capability up.
  for (const name of deadly)
    if (!name.startsWith("io_uring") && name !== "capset")
      lines.push(...rule(architecture, name, [answer(action.kill)]));
  return assemble([...lines, answer(action.allow)]);
}

/** Stage 1, before the controller's code: an allowlist; what is not on it fails or ends the process. */
export function strictFilter(architecture: Architecture, pid: number): Buffer {
  const lines = start(architecture);
  for (const name of allowed) lines.push(...rule(architecture, name, [answer(action.allow)]));
  for (const [name, body] of argumentChecked(pid)) lines.push(...rule(architecture, name, body));
  for (const [name, errno] of refused) lines.push(...rule(architecture, name, [answer(action.errno(errno))]));
  for (const name of deadly) lines.push(...rule(architecture, name, [answer(action.kill)]));
  return assemble([...lines, answer(action.errno(EPERM))]);
}
