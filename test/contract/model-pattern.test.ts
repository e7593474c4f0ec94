import { expect, it } from "vitest";
import { modelPattern } from "#contract/model-pattern.ts";
import { within } from "../patience.ts";

it("fits the names that a star for any run of characters makes of it, and no others", () => {
  const words = (letters: string, longest: number): string[] =>
    longest === 0
      ? [""]
      : ["", ...words(letters, longest - 1).flatMap((word) => [...letters].map((one) => word + one))];
  const names = words("ab", 5);
  for (const text of words("ab*", 4)) {
    const expected = names.filter((name) => new RegExp(`^${text.replaceAll("*", ".*")}$`).test(name));
    const { fits } = modelPattern(`p/${text}`);
    expect([text, names.filter((name) => fits("p", name))]).toEqual([text, expected]);
  }
});

it("takes a name without a slash for an id of any provider, and a list that forbids takes any case", () => {
  expect(modelPattern("gpt-*").fits("azure", "gpt-4o")).toBe(true);
  expect(modelPattern("azure/*").fits("other", "azure")).toBe(false);
  expect(modelPattern("GPT-*").fits("azure", "gpt-4o")).toBe(false);
  expect(modelPattern("GPT-*", { anyCase: true }).fits("azure", "gPt-4o")).toBe(true);
});

it("is as quick with many stars as with one", () => {
  const pattern = modelPattern(`sandbox/${"*a".repeat(100)}*b`);
  const began = performance.now();
  expect(pattern.fits("sandbox", "a".repeat(250))).toBe(false);
  expect(performance.now() - began).toBeLessThan(within(50));
});
