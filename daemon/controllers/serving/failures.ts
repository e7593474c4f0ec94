// What a call fails with: what its handler threw, or what ended its cell.
import { type ErrorCode, errors, MagicError } from "#contract/errors.ts";
import type { StackMapper } from "../bundle/stack.ts";
import type { CellGone } from "../cell/cell.ts";
import type { GuestError } from "../cell/frames.ts";

/** As V8, structuredClone, zlib, Zstandard, SQLite and OpenSSL say it. Brotli has the same words for broken data. */
const OUT_OF_MEMORY = new RegExp(
  `^(${[
    "Array buffer allocation failed",
    "Failed to allocate memory",
    "WebAssembly\\.Memory(\\(\\): could not allocate|\\.grow\\(\\): Unable to grow instance) memory",
    "(Shared)?ArrayBuffer\\.prototype\\.(resize|grow): Out of memory",
    "Unable to deserialize cloned data\\.$",
    "Data cannot be cloned, out of memory\\.$",
    "insufficient memory$",
    "Allocation error : not enough memory$",
    "out of memory$",
    "(scrypt|Argon2) derivation failed$",
  ].join("|")})`,
);

/** Whether the handler was refused memory: what its cell holds already, it goes on holding. */
export function ranOut({ code, message }: GuestError): boolean {
  return !(code !== undefined && allowedCode(code)) && OUT_OF_MEMORY.test(message);
}

/** What the handler threw. `redact` strikes out the secrets that the call has learned. */
export function handlerFailure(
  error: GuestError,
  { memoryMb, stacks, redact }: { memoryMb: number; stacks: StackMapper; redact(text: string): string },
): MagicError {
  const message = redact(error.message);
  const name = redact(error.name);
  if (error.code !== undefined && allowedCode(error.code)) {
    const add = error.code === "capability_denied" && error.add !== undefined ? redact(error.add) : null;
    return new MagicError(error.code, message, add === null ? {} : { extra: { add } });
  }
  if (ranOut(error)) return new MagicError("memory_exceeded", `${message} (limits.memory_mb is ${memoryMb})`);
  const stack = error.stack === undefined ? undefined : redact(stacks.map(error.stack));
  // A HandlerError of this code says what the caller is to read; anything else is told as what it is.
  const text = error.code === "handler_error" ? message : `the handler threw ${name}${message && `: ${message}`}`;
  return new MagicError("handler_error", text, {
    cause: Object.assign(new Error(message), { name, stack }),
  });
}

/** What became of a call whose cell has ended. */
export function cellFailure(gone: CellGone, memoryMb: number): MagicError {
  if (gone.reason === "memory")
    return new MagicError("memory_exceeded", `the cell ran ${gone.message}; limits.memory_mb is ${memoryMb}`);
  if (gone.reason === "violation") return new MagicError("limit_exceeded", `the cell was ended: ${gone.message}`);
  if (gone.reason === "killed")
    return new MagicError("overloaded", `the cell that ran this call was ended: ${gone.message}`, { retryAfterS: 1 });
  return new MagicError("handler_error", `the cell died: ${gone.message}`);
}

/** Codes that a handler may answer with: the catalogue's, but for what is about the caller's credential or the daemon itself. */
function allowedCode(code: string): code is ErrorCode {
  if (!Object.hasOwn(errors, code)) return false;
  const { status } = errors[code as ErrorCode];
  return (
    status >= 400 && status !== 401 && code !== "insufficient_scope" && code !== "internal" && code !== "handler_error"
  );
}
