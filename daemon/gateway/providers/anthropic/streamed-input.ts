// The input of one tool call as it streams in, from Claude's own service and through Bedrock alike.
import { ownText } from "./member-names.ts";

export interface StreamedInput {
  write(piece: string): void;
  /** The input is whole. */
  close(): void;
}

/**
 * @param show takes what the caller is to see.
 * @param names of members that go under other names: then the input is held until it is whole.
 * @param initial shown where nothing is written.
 */
export function streamedInput(
  show: (piece: string) => void,
  names: ReadonlyMap<string, string> | undefined,
  initial = "{}",
): StreamedInput {
  let held = "";
  let written = false;
  const write = (piece: string) => {
    if (piece === "") return;
    written = true;
    if (names) held += piece;
    else show(piece);
  };
  return {
    write,
    close() {
      if (!written) write(initial);
      if (names) show(ownText(held, names));
    },
  };
}
