// Sentences for operations that bring none of their own.

const verbs: Readonly<Record<string, string>> = {
  list: "List",
  get: "Get",
  create: "Create",
  update: "Change",
  delete: "Delete",
};

/** `connections.list` -> "List connections", `syncs.trigger` -> "Syncs: trigger". */
export function summaryOf(action: string): string {
  const [noun = "", ...rest] = action.split(".");
  const [verb = ""] = rest;
  const words = noun.replaceAll("-", " ");
  if (rest.length === 1 && verbs[verb]) return `${verbs[verb]} ${words}`;
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}: ${rest.join(" ").replaceAll("-", " ")}`;
}
