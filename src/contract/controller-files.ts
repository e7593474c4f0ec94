// A controller's folder: what it is not called, the names under which its contract and its handler are looked for, in this order, and what is
// said where there is no handler.

export const CONTRACT_FILES = ["contract.yaml", "contract.yml", "contract.json"] as const;
export const HANDLER_FILES = ["handler.ts", "handler.mts", "handler.js", "handler.mjs", "handler.cjs"] as const;

/** Whether a folder beside the controllers is none, whatever is in it. */
export function isPassedOver(name: string): boolean {
  return name.startsWith(".") || name === "node_modules";
}

export interface MissingHandler {
  readonly file: string;
  readonly message: string;
  readonly fix: string;
}

const ALMOST = /^(?:handlers?|index)\.[cm]?([jt])s(x?)$/i;

/** What to say of a contract that is there; `why` it cannot be read is a clause. */
export function unreadableContract(why: string): { readonly message: string; readonly fix: string } {
  return { message: `The contract cannot be read: ${why}.`, fix: "Correct its permissions." };
}

/** What to say of a folder with these files, none of which is a handler: one of them may be meant as one. */
export function missingHandler(files: readonly string[]): MissingHandler {
  const almost = files.toSorted().find((name) => ALMOST.test(name));
  const [, kind = "", jsx] = ALMOST.exec(almost ?? "") ?? [];
  if (almost === undefined)
    return {
      file: HANDLER_FILES[0],
      message: "There is no handler.",
      fix: `Write ${HANDLER_FILES[0]} or handler.js, whose default export is \`defineHandler(...)\`.`,
    };
  // Seen in the folder, and yet not found: a link that leads nowhere, or a folder that lets nobody in.
  if ((HANDLER_FILES as readonly string[]).includes(almost))
    return {
      file: almost,
      message: `${almost} cannot be reached.`,
      fix: "Correct the link, or the folder's permissions.",
    };
  const name = `handler.${kind.toLowerCase()}s`;
  return {
    file: almost,
    message: `There is no handler: ${almost} is not taken for one.`,
    fix: `Rename it ${name}${jsx ? ", and write it without JSX" : ""}. Handlers are called ${HANDLER_FILES.join(", ")}.`,
  };
}
