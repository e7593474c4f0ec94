// "Did you mean ...?" for names that people type.

/** The known name nearest to the given one, or undefined where none is near enough to be a slip. */
export function nearest(given: string, known: Iterable<string>): string | undefined {
  const wanted = fold(given);
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(given.length / 3)) + 1;
  for (const name of known) {
    const other = fold(name);
    if (wanted.length >= 3 && other.startsWith(wanted) && bestDistance > 1) {
      best = name;
      bestDistance = 1;
    }
    if (Math.abs(other.length - wanted.length) >= bestDistance || wanted.length > 64) continue;
    const distance = editDistance(wanted, other);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

// camelCase, dashes and case are the commonest slips: they count for nothing.
function fold(name: string): string {
  return name.replace(/[-_ ]/g, "").toLowerCase();
}

/** Damerau-Levenshtein (optimal string alignment): insertions, deletions, substitutions and swaps of neighbours. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
