// Names of tools as Gemini takes them: they begin with a letter or an underscore, and have dots and colons beside what OpenAI's have.
import { fittingNames, ownNames } from "../fitting-names.ts";

const TAKEN = /^[a-zA-Z_][\w.:-]{0,127}$/;
/** Leaves room for a number. */
const LONGEST = 58;

export interface ToolNames {
  /** As Gemini is told; of earlier calls too, which may be of what nobody offered. */
  sent(own: string): string;
  /** Those that differ, by what Gemini is told. */
  readonly own: ReadonlyMap<string, string>;
}

export function toolNames(tools: readonly { readonly name: string }[]): ToolNames {
  const names = fittingNames(
    tools.map(({ name }) => name),
    TAKEN,
    made,
  );
  return { sent: (own) => names.get(own) ?? (TAKEN.test(own) ? own : made(own)), own: ownNames(names) };
}

function made(own: string): string {
  const plain = own.replaceAll(/[^\w.:-]/g, "_").slice(0, LONGEST);
  return /^[a-zA-Z_]/.test(plain) ? plain : `_${plain}`;
}
