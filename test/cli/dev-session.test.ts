// What a development session does when its daemon goes away.
import { expect, test } from "vitest";
import type { ApiClient } from "#client/http.ts";
import { sessionEvents } from "#commands/dev/session.ts";
import { MagicError } from "#contract/errors.ts";

const answering = (...events: object[]) =>
  ({
    send: async () => new Response(events.map((event) => `${JSON.stringify(event)}\n`).join("")),
  }) as unknown as ApiClient;

test("a daemon that was stopped is waited for, one that died is started; one that does nothing is an error at once", async () => {
  const asked: boolean[] = [];
  const told: boolean[] = [];
  const daemons = [
    answering({ type: "ready" }, { type: "stopped", reason: "the daemon stops" }),
    answering({ type: "ready" }),
    new MagicError("daemon_unavailable", "nothing", { extra: { reason: "wedged" } }),
  ];
  const events = sessionEvents({
    client: async (start) => {
      asked.push(start);
      const next = daemons.shift();
      if (!next || next instanceof Error) throw next;
      return next;
    },
    folder: "/project/controllers",
    only: [],
    signal: new AbortController().signal,
    onLost: (stopped) => told.push(stopped),
  });
  const seen: string[] = [];
  const all = (async () => {
    for await (const { event } of events) seen.push(event.type);
  })();
  await expect(all).rejects.toThrow("nothing");
  expect({ seen, asked, told }).toEqual({ seen: ["ready", "ready"], asked: [true, false, true], told: [true, false] });
});
