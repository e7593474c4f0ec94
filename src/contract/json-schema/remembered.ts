/** Distinct words; more of them are somebody's attempt. */
const MAX_REMEMBERED = 1_000;

/** `find`, asked once for each word: the same few stand everywhere in a contract. */
export function remembered<T>(find: (word: string) => T): (word: string) => T {
  const found = new Map<string, T>();
  return (word) => {
    if (found.has(word)) return found.get(word) as T;
    if (found.size >= MAX_REMEMBERED) found.clear();
    const answer = find(word);
    found.set(word, answer);
    return answer;
  };
}
