// Places: so many at once, the others in turn, for as long as they want to wait.
import { expect, test } from "vitest";
import { openPlaces } from "#shared/places.ts";

const refusal = () => new Error("refused");

test("no more run at once than there are places, and the others follow in the order in which they came", async () => {
  const { hold } = openPlaces({ atOnce: 2, refusal });
  const begun: number[] = [];
  const ends = new Map<number, () => void>();
  const works = [0, 1, 2, 3].map((n) =>
    hold(() => {
      begun.push(n);
      return new Promise<number>((resolve, reject) => ends.set(n, () => (n === 1 ? reject(refusal()) : resolve(n))));
    }),
  );
  await Promise.resolve();
  expect(begun).toEqual([0, 1]);
  ends.get(1)?.();
  await expect(works[1]).rejects.toThrow("refused");
  expect(begun).toEqual([0, 1, 2]);
  for (const n of [0, 2]) ends.get(n)?.();
  await works[2];
  ends.get(3)?.();
  expect(await works[3]).toBe(3);
});

test("who waits too long, or as one too many, is refused and takes no place", async () => {
  const { hold } = openPlaces({ atOnce: 1, mostWaiting: 1, refusal });
  const { promise, resolve } = Promise.withResolvers<string>();
  const first = hold(() => promise);
  const leaving = new AbortController();
  const second = hold(async () => "second", leaving.signal);
  await expect(hold(async () => "third")).rejects.toThrow("refused");
  leaving.abort();
  await expect(second).rejects.toThrow("refused");
  const fourth = hold(async () => "fourth");
  resolve("first");
  expect(await Promise.all([first, fourth])).toEqual(["first", "fourth"]);
  await expect(hold(async () => "fifth", AbortSignal.abort())).resolves.toBe("fifth");
});

test("a long line of the one kind does not hold up the other, and the other one does not keep it from its turns", async () => {
  const { hold } = openPlaces({ atOnce: 1, refusal });
  const served: string[] = [];
  const first = Promise.withResolvers<void>();
  const works = [hold(() => first.promise)];
  const waits = (name: string, line: 0 | 1) => works.push(hold(async () => void served.push(name), undefined, line));
  for (const name of ["r1", "r2", "r3", "r4"]) waits(name, 1);
  for (const name of ["c1", "c2"]) waits(name, 0);
  first.resolve();
  await Promise.all(works);
  expect(served).toEqual(["c1", "r1", "c2", "r2", "r3", "r4"]);
});
