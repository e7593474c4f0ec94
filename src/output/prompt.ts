// Questions to a person at a terminal. They are asked on stderr: stdout is for data. Ctrl-C is an interruption, not an answer. What is asked
// about has a name that a database, a vendor or a daemon elsewhere gave it: it is shown as `oneLine`.
import { createInterface } from "node:readline";
import { MagicError } from "#contract/errors.ts";
import { oneLine, printable } from "./paint.ts";

/** `problem` says what is wrong with an answer; it is asked again until nothing is. */
export async function askText(
  message: string,
  initial?: string,
  problem: (given: string) => string | undefined = () => undefined,
): Promise<string> {
  const { input } = await import("@inquirer/prompts");
  const preset = initial === undefined ? {} : { default: oneLine(initial) };
  const validate = (given: string) => problem(given) ?? true;
  return answer((where) => input({ message: oneLine(message), required: true, ...preset, validate }, where));
}

/** Milliseconds within which what follows a line was pasted with it. */
const PASTED = 20;
// A terminal that is asked for it says where a paste begins and ends (xterm's mode 2004).
const tellPastes = (on: boolean) => `\u001b[?2004${on ? "h" : "l"}`;

/** What is said next in a conversation: a line, which may be empty, or the lines of a paste; null where there is none any more (Ctrl-D). */
export function askLine(
  message: string,
  input: NodeJS.ReadableStream = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Promise<string | null> {
  const lines = createInterface({ input, output, prompt: printable(message, true), terminal: true });
  const told = (output as Partial<NodeJS.WriteStream>).isTTY === true && process.env["TERM"] !== "dumb";
  if (told) output.write(tellPastes(true));
  const said: string[] = [];
  let pasting = false;
  let timer: NodeJS.Timeout | undefined;
  const onKey = (_text: string | undefined, { name }: { name?: string } = {}) => {
    if (name === "paste-start" || name === "paste-end") pasting = name === "paste-start";
  };
  input.on("keypress", onKey);
  return new Promise<string | null>((resolve, reject) => {
    lines.on("SIGINT", () => reject(new MagicError("interrupted", "Interrupted")));
    lines.on("SIGCONT", () => lines.prompt(true));
    // The end may come with the last line.
    lines.on("close", () => resolve(said.length > 0 ? said.join("\n") : null));
    lines.on("line", (line) => {
      said.push(line);
      clearTimeout(timer);
      // The Enter that ends a paste's last line is its writer's.
      if (!pasting) timer = setTimeout(() => lines.line === "" && resolve(said.join("\n")), PASTED);
    });
    lines.prompt();
  }).finally(() => {
    clearTimeout(timer);
    input.off("keypress", onKey);
    lines.close();
    if (told) output.write(tellPastes(false));
  });
}

/** Not shown while it is typed. */
export async function askSecret(message: string): Promise<string> {
  const { password } = await import("@inquirer/prompts");
  return answer((where) => password({ message: oneLine(message), mask: true }, where));
}

/** Enter alone is a no. */
export async function askConfirm(message: string): Promise<boolean> {
  const { confirm } = await import("@inquirer/prompts");
  return answer((where) => confirm({ message: oneLine(message), default: false }, where));
}

export async function askChoice<T extends string>(
  message: string,
  choices: readonly { readonly value: T; readonly name: string; readonly description?: string }[],
): Promise<T> {
  const { select } = await import("@inquirer/prompts");
  const listed = choices.map(({ value, name, description }) => ({
    ...{ value, name: oneLine(name) },
    ...(description === undefined ? {} : { description: oneLine(description) }),
  }));
  return answer((where) => select<T>({ message: oneLine(message), choices: listed }, where));
}

interface Where {
  readonly output: NodeJS.WritableStream;
  readonly signal: AbortSignal;
}

// Readline ends at Ctrl-D, and after Ctrl-Z and `fg` waits to be told to go on: inquirer hears of neither, and its answer would never come.
async function answer<T>(ask: (where: Where) => Promise<T>): Promise<T> {
  const { stdin } = process;
  const end = new AbortController();
  const onPause = () => setImmediate(() => stdin.isPaused() && end.abort());
  // Behind readline's own listener, which holds the input back.
  const onContinue = () => queueMicrotask(() => stdin.resume());
  stdin.on("pause", onPause);
  process.on("SIGCONT", onContinue);
  try {
    return await ask({ output: process.stderr, signal: end.signal });
  } catch (error) {
    if (error instanceof Error && (error.name === "ExitPromptError" || error.name === "AbortPromptError"))
      throw new MagicError("interrupted", "Interrupted", { cause: error });
    throw error;
  } finally {
    stdin.off("pause", onPause);
    process.off("SIGCONT", onContinue);
    stdin.pause();
  }
}
