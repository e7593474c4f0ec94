// What differs between Claude models on the Messages API: how thinking is asked for, whether sampling parameters are taken, whether JSON
// schemas are kept by the service itself. By families, the newest first; an unknown model is taken for a current one.

export interface ClaudeTraits {
  readonly maxOutput: number;
  readonly nativeSchema: boolean;
  /** `adaptive`: an effort; `budget`: a number of tokens; `none`. */
  readonly thinking: "adaptive" | "budget" | "none";
  /** Which of temperature and top_p are taken: both together, one of the two, none. */
  readonly sampling: "both" | "either" | "none";
  /** The type of thinking that is none; null: it cannot be switched off. */
  readonly noThinking: "disabled" | "between_tools" | null;
  /** It thinks where nobody says whether it shall. */
  readonly thinksUnasked: boolean;
  /** Its thinking counts only after the very words that it was thought after: the service refuses it elsewhere, unless asked to pass over it. */
  readonly bindsThinking: boolean;
  /** It goes on with an answer whose beginning it is given: a conversation may end with the assistant's turn. */
  readonly continues: boolean;
  /** It can be made to call a tool. */
  readonly forcesTools: boolean;
  /** Efforts beyond `high`. */
  readonly xhigh: boolean;
  /** It hears the system within a conversation. */
  readonly hearsSystemLater: boolean;
}

const current: ClaudeTraits = {
  maxOutput: 128_000,
  nativeSchema: true,
  thinking: "adaptive",
  sampling: "none",
  noThinking: "disabled",
  thinksUnasked: false,
  bindsThinking: false,
  continues: false,
  forcesTools: true,
  xhigh: true,
  hearsSystemLater: false,
};

const newest = {
  noThinking: null,
  thinksUnasked: true,
  bindsThinking: true,
  forcesTools: false,
  hearsSystemLater: true,
} as const;
const early = { continues: true, sampling: "both", nativeSchema: false } as const;

const families: readonly (readonly [RegExp, Partial<ClaudeTraits>])[] = [
  [/((fable|mythos)-5-[1-9]|opus-5-5)(?!\d)/, newest],
  // Between calls of tools it still notes what it does.
  [/sonnet-5-5(?!\d)/, { ...newest, noThinking: "between_tools" }],
  [/haiku-5-5(?!\d)/, { thinksUnasked: true, bindsThinking: true, hearsSystemLater: true }],
  [/(fable|mythos)-5/, { noThinking: null, thinksUnasked: true, hearsSystemLater: true }],
  [/opus-5/, { thinksUnasked: true, hearsSystemLater: true }],
  [/(haiku|sonnet)-5/, { thinksUnasked: true }],
  [/opus-4-8/, { hearsSystemLater: true }],
  [/opus-4-7/, {}],
  [/(sonnet-4-6|opus-4-6)/, { sampling: "either", xhigh: false }],
  [/(sonnet|haiku|opus)-4-5/, { continues: true, maxOutput: 64_000, thinking: "budget", sampling: "either" }],
  [/opus-4-1/, { continues: true, maxOutput: 32_000, thinking: "budget", sampling: "either" }],
  [/sonnet-4(?!-[1-9]\b)/, { ...early, maxOutput: 64_000, thinking: "budget" }],
  [/opus-4(?!-[1-9]\b)/, { ...early, maxOutput: 32_000, thinking: "budget" }],
  [/3-7-sonnet/, { ...early, maxOutput: 64_000, thinking: "budget" }],
  [/(claude-3-5|3-5-)/, { ...early, maxOutput: 8192, thinking: "none" }],
  [/(claude-3|claude-2|instant)/, { ...early, maxOutput: 4096, thinking: "none" }],
];

/** Traits of a model by its id, whatever dates, regions and vendors stand around it. */
export function claudeTraits(model: string): ClaudeTraits {
  const id = model.toLowerCase();
  for (const [pattern, traits] of families) if (pattern.test(id)) return { ...current, ...traits };
  if (id.includes("claude")) return { ...current, sampling: "either" };
  // Others, behind other services of Anthropic's format, are asked to go on and get both, and may refuse it.
  return { ...current, sampling: "both", continues: true, maxOutput: 8192 };
}
