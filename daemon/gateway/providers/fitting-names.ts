// Names as a service takes them, where it refuses those that a caller has given: each different from all others, so that it can be led back.

/** For each name the one that is sent: itself where it fits, else one made of it. `made` leaves room for a number behind it. */
export function fittingNames(
  all: readonly string[],
  fits: RegExp,
  made: (own: string) => string,
): ReadonlyMap<string, string> {
  const sent = new Map(all.filter((name) => fits.test(name)).map((name) => [name, name]));
  const used = new Set(sent.keys());
  const numbers = new Map<string, number>();
  for (const own of all) {
    if (sent.has(own)) continue;
    const plain = made(own);
    let number = numbers.get(plain) ?? 1;
    let name = number === 1 ? plain : `${plain}_${number}`;
    while (used.has(name)) name = `${plain}_${++number}`;
    numbers.set(plain, number);
    used.add(name);
    sent.set(own, name);
  }
  return sent;
}

/** What is not sent as it is called: the own names, by those that are sent. */
export function ownNames(sent: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...sent].filter(([own, name]) => own !== name).map(([own, name]) => [name, own]));
}
