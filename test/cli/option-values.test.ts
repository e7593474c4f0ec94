// What options take for a time, whatever Date.parse would make of it.
import { expect, test } from "vitest";
import { pathPart } from "#client/path-part.ts";
import { flagsOf } from "#commands/daemon/listen-options.ts";
import { betweenOf, filled, listValue, timeOf } from "#commands/option-values.ts";

test("a day or a time is taken, a day that no calendar has is not", () => {
  expect(timeOf(undefined, "--since")).toBeUndefined();
  expect(timeOf("2028-02-29", "--since")).toBe("2028-02-29T00:00:00.000Z");
  expect(timeOf("2026-02-28T23:30:00-01:00", "--since")).toBe("2026-03-01T00:30:00.000Z");
  for (const text of ["2026-02-29", "2026-02-30T00:00:00Z", "2026-04-31", "2026-13-01", "2026-00-10", "yesterday", ""])
    expect(() => timeOf(text, "--since"), text).toThrow("--since takes a time");
});

test("files that the daemon reads are named from where the command runs", () => {
  const options = { tlsCert: "tls/cert.pem", tlsKey: "/etc/key.pem" };
  expect(flagsOf(options, "/srv/shop")).toEqual(["--tls-cert=/srv/shop/tls/cert.pem", "--tls-key=/etc/key.pem"]);
});

test("a span that ends before it begins is refused: nothing could be found in it", () => {
  expect(betweenOf({ since: "2026-01-01", until: "2026-01-02" })).toEqual({
    since: "2026-01-01T00:00:00.000Z",
    until: "2026-01-02T00:00:00.000Z",
  });
  expect(betweenOf({ until: "2026-01-02" })).toMatchObject({ since: undefined });
  for (const until of ["2026-01-01", "2025-12-31"])
    expect(() => betweenOf({ since: "2026-01-01", until })).toThrow("is not before");
});

test("a list of nothing, a variable that is not set, does not mean everything", () => {
  expect([listValue(undefined, "--columns"), listValue('a, "b,c" ,,d', "--columns")]).toEqual([
    undefined,
    ["a", "b,c", "d"],
  ]);
  for (const text of ["", " ", ",", " , "])
    expect(() => listValue(text, "--columns")).toThrow("--columns lists nothing");
  expect(() => listValue('a,"b', "--columns")).toThrow('nothing closes the quote of "b');
  expect(() => filled("", "--cursor-field")).toThrow("--cursor-field is empty");
});

test("an id that is empty, or would climb to another path, is refused before anything is asked", () => {
  expect([pathPart("sync_1"), pathPart("a/../b"), pathPart(undefined)]).toEqual(["sync_1", "a%2F..%2Fb", ""]);
  for (const id of ["", " ", ".", ".."]) expect(() => pathPart(id)).toThrow("is no id and no name");
});
