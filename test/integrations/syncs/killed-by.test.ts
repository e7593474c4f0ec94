// A session of a server ends with its run.
import { expect, test } from "vitest";
import { killedBy } from "#daemon/integrations/connectors/killed-by.ts";

test("a session is killed when its run is cancelled, also while it was made, and not once it was closed", async () => {
  let kills = 0;
  const link = { kill: () => void kills++, close: async () => {} };
  killedBy(AbortSignal.abort(), link);
  expect(kills).toBe(1);
  const later = new AbortController();
  killedBy(later.signal, link);
  await killedBy(later.signal, link).close();
  later.abort();
  expect(kills).toBe(2);
});
