// Questions to a person at a terminal. They are asked on stderr: stdout is for data. Ctrl-C is an interruption, not an answer.
import { createInterface } from "node:readline";
import { MagicError } from "#contract/errors.ts";

const where = { output: process.stderr };

/** `problem` says what is wrong with an answer; it is asked again until nothing is. */
export async function askText(
  message: string,
  initial?: string,
  problem: (given: string) => string | undefined = () => undefined,
): Promise<string> {
  const { input } = await import("@inquirer/prompts");
  const preset = initial === undefined ? {} : { default: initial };
  return answer(input({ message, required: true, ...preset, validate: (given) => problem(given) ?? true }, where));
}

/** One line of a conversation, which may be empty; null where there is none any more (Ctrl-D). */
export function askLine(
  message: string,
  input: NodeJS.ReadableStream = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): Promise<string | null> {
  const lines = createInterface({ input, output, terminal: true });
  return new Promise<string | null>((resolve, reject) => {
    lines.on("SIGINT", () => reject(new MagicError("interrupted", "Interrupted")));
    lines.on("close", () => resolve(null));
    lines.question(message, resolve);
  }).finally(() => lines.close());
}

/** Not shown while it is typed. */
export async function askSecret(message: string): Promise<string> {
  const { password } = await import("@inquirer/prompts");
  return answer(password({ message, mask: true }, where));
}

export async function askConfirm(message: string, initial = false): Promise<boolean> {
  const { confirm } = await import("@inquirer/prompts");
  return answer(confirm({ message, default: initial }, where));
}

export async function askChoice<T extends string>(
  message: string,
  choices: readonly { readonly value: T; readonly name: string; readonly description?: string }[],
): Promise<T> {
  const { select } = await import("@inquirer/prompts");
  return answer(select<T>({ message, choices: [...choices] }, where));
}

async function answer<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof Error && error.name === "ExitPromptError")
      throw new MagicError("interrupted", "Interrupted", { cause: error });
    throw error;
  }
}
