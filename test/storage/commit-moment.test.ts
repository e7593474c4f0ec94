import { expect, test } from "vitest";
import { atCommitMoment } from "#daemon/storage/commit-moment.ts";

test("what waits for a commit comes in one step, and what begins to wait meanwhile in the next", async () => {
  const seen: string[] = [];
  const next = Promise.withResolvers<void>();
  const first = Promise.withResolvers<void>();
  atCommitMoment(() => {
    seen.push("ledger");
    void Promise.resolve().then(() => seen.push("a step later"));
    atCommitMoment(() => {
      seen.push("the next");
      next.resolve();
    });
  });
  const audit = () => {
    seen.push("audit");
    first.resolve();
  };
  // Asked for twice, it runs once.
  atCommitMoment(audit);
  atCommitMoment(audit);
  await first.promise;
  expect(seen).toEqual(["ledger", "audit", "a step later"]);
  // The timer of a moment holds no process; this one stays for it.
  const stay = setTimeout(() => next.reject(new Error("no next moment")), 5_000);
  await next.promise;
  clearTimeout(stay);
  expect(seen.at(-1)).toBe("the next");
});
