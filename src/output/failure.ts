// How a failing command ends: a sentence for people, or, in the machine formats, one JSON document as the last line of stderr.
import { type ErrorCode, errors, isMagicError, MagicError, sentenceOf } from "#contract/errors.ts";
import { type ExitCode, exitCodes } from "#contract/exit-codes.ts";
import type { Problem } from "#contract/problem.ts";
import { userStateFolder } from "#shared/paths.ts";
import { redactText } from "#shared/redact.ts";
import type { Format, Streams } from "./output.ts";
import { createPaint, printable, printableJson, wantsColour } from "./paint.ts";
import { problemsText } from "./problems.ts";
import { columnsOf, wrap } from "./wrap.ts";

/** What the file system refuses is the machine's affair, or that of who named the path, not an error of magic's own. */
const fileErrors: Readonly<Record<string, ErrorCode>> = {
  ENOENT: "not_found",
  ENOTDIR: "not_found",
  EISDIR: "not_found",
  ELOOP: "not_found",
  ENXIO: "not_found",
  ENAMETOOLONG: "not_found",
  EACCES: "state_unusable",
  EPERM: "state_unusable",
  EROFS: "state_unusable",
  ENOSPC: "storage_full",
  EDQUOT: "storage_full",
  EFBIG: "storage_full",
};

/** Anything thrown as a MagicError: what is not one is an error of magic's own. */
function asMagicError(thrown: unknown): MagicError {
  if (isMagicError(thrown)) return thrown;
  const { code = "", path } = (thrown ?? {}) as NodeJS.ErrnoException;
  const fileCode = fileErrors[code];
  // Without a path it is a socket's or a process's error, whose absence nobody named.
  if (fileCode && thrown instanceof Error && (fileCode !== "not_found" || path !== undefined)) {
    const extra = fileCode === "not_found" ? { next: `Check the path ${path}.` } : {};
    return new MagicError(fileCode, `${thrown.message}.`, { cause: thrown, extra });
  }
  const detail = thrown instanceof Error ? thrown.message : String(thrown);
  return new MagicError("internal", detail, { cause: thrown });
}

function exitCodeOf(error: MagicError): ExitCode {
  return exitCodes[errors[error.code]?.exit ?? "internal"];
}

/** Writes the failure to stderr and returns the exit code. Stdout is not touched. */
export function reportFailure(
  thrown: unknown,
  format: Format,
  streams: Pick<Streams, "stdout" | "stderr">,
  env: NodeJS.ProcessEnv,
): ExitCode {
  const error = namingHome(asMagicError(thrown), env);
  const code = exitCodeOf(error);
  const terminal = streams.stderr.isTTY === true && streams.stdout.isTTY === true;
  const colours = wantsColour(env, terminal);
  if (env["MAGIC_DEBUG"]) streams.stderr.write(`${printable(stackOf(thrown), false)}\n`);
  const text =
    format === "text"
      ? wrap(printable(failureText(error, colours), colours), columnsOf(streams.stderr))
      : printableJson(failureDocument(error, code), 0);
  streams.stderr.write(`${redactText(text)}\n`);
  return code;
}

// Whoever set MAGIC_HOME, in a profile or a container's image, may not think of it where a folder of that name is refused.
function namingHome(error: MagicError, env: NodeJS.ProcessEnv): MagicError {
  const { code, message, problems, extra } = error;
  if (code !== "state_unusable" || !env["MAGIC_HOME"] || !message.includes(userStateFolder(env))) return error;
  const next = `Correct the folder that MAGIC_HOME names, or let it name another one; nothing was changed.`;
  return new MagicError(code, message, { cause: error.cause, problems, extra: { ...extra, next } });
}

/** `{code, detail, exit_code, request_id, ...}` */
function failureDocument(error: MagicError, exitCode: ExitCode): Record<string, unknown> {
  const entry = errors[error.code];
  return {
    code: error.code,
    detail: error.message,
    exit_code: exitCode,
    request_id: error.extra["request_id"] ?? null,
    title: entry?.title,
    next: entry?.next,
    retryable: entry?.retryable ?? false,
    ...(error.problems.length > 0 ? { errors: error.problems } : {}),
    ...(error.retryAfterS === undefined ? {} : { retry_after_s: error.retryAfterS }),
    ...error.extra,
  };
}

/** What happened, why, what to do next, then the code and the request id for whoever searches for them; for `printable`. */
export function failureText(thrown: unknown, colours: boolean): string {
  const error = asMagicError(thrown);
  const paint = createPaint(colours);
  const entry = errors[error.code as ErrorCode];
  const inFiles = error.extra["problems"];
  const shown = Array.isArray(inFiles) && inFiles.length > 0 ? (inFiles as Problem[]) : undefined;
  // Several stand below, files' with their lines: a message that is nothing but them would only say them twice.
  const twice = shown || (error.problems.length > 1 && error.message === sentenceOf(error.code, error.problems));
  const lines = [`${paint.red("error:")} ${twice && entry ? `${entry.title}.` : error.message}`];
  // A single one is often the message itself.
  const said = error.problems.length === 1 && error.message.endsWith(error.problems[0]?.detail ?? "");
  for (const problem of shown || said ? [] : error.problems)
    lines.push(`  ${paint.cyan(problem.pointer || "/")}  ${problem.detail}`);
  if (shown) lines.push(problemsText(shown, paint, process.cwd()));
  const next = error.extra["next"] ?? entry?.next;
  if (typeof next === "string" && next !== "Nothing.") lines.push(`  ${paint.dim("next:")} ${next}`);
  const id = error.extra["request_id"];
  lines.push(paint.dim(`  code ${error.code}${typeof id === "string" ? `, request ${id}` : ""}`));
  return lines.join("\n");
}

function stackOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return `${thrown.stack ?? thrown.message}${thrown.cause === undefined ? "" : `\ncaused by ${stackOf(thrown.cause)}`}`;
}
