// Changes of one resource that come at once.
import { expect, test } from "vitest";
import { changesOf } from "#daemon/integrations/changes.ts";

test("who meets others goes on in turn, and is kept however many there are and come after", async () => {
  let revision = 0;
  const change = changesOf("thing");
  const attempt = async () => {
    const read = revision;
    await new Promise(setImmediate);
    return read === revision ? ++revision : ("stale" as const);
  };
  const client = async () => {
    for (let i = 0; i < 100; i++) await change("one", attempt);
  };
  await Promise.all(Array.from({ length: 20 }, client));
  expect(revision).toBe(2_000);
});

test("where storage is away, all are refused together", async () => {
  const away = Promise.withResolvers<never>();
  let asked = 0;
  const change = changesOf("thing");
  const answers = Array.from({ length: 3 }, () =>
    change("one", () => {
      asked++;
      return away.promise;
    }),
  );
  expect(asked).toBe(3);
  away.reject(new Error("away"));
  for (const { status } of await Promise.allSettled(answers)) expect(status).toBe("rejected");
});
