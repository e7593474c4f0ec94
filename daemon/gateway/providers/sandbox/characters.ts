// The characters that texts by a pattern are made of.

export const digits = [..."0123456789"];
export const words = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"];

/** Of each kind that texts have, and of the writings that are asked for most. */
const all = [...words, ..."éßñÅøÇαβΓбвДאבعرक你好かなカナ한글", ..." .,:;!?'\"()/&@#%*-+=<>$€£°©🙂"];

// Strangers' patterns name one over and over: bounded, for names without end.
const kinds = new Map<string, string[]>();

/** Those with a property of Unicode's, `\p{L}` or `\P{L}`; nothing where there is no such property. */
export function withProperty(property: string): string[] {
  let found = kinds.get(property);
  if (!found) {
    if (kinds.size > 1000) kinds.clear();
    found = charactersOf(property);
    kinds.set(property, found);
  }
  return found;
}

function charactersOf(property: string): string[] {
  try {
    const expression = new RegExp(property, "u");
    const found = all.filter((character) => expression.test(character));
    return found.length > 0 ? found : [""];
  } catch {
    return [""];
  }
}
