// docs/connectors says what the definitions say, and every stream cites the page that it is written from.
import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { connectorPages } from "../../../docs/connector-pages.ts";

const folder = new URL("../../../docs/connectors/", import.meta.url);

// Lines in any order: those of two branches may stand beside each other in the list.
const lines = (text: string): string[] => text.split("\n").sort();

test("docs/connectors is what the definitions say (else: npm run docs)", async () => {
  const pages = await connectorPages();
  expect(readdirSync(folder).sort()).toEqual([...pages.keys()].sort());
  for (const [name, text] of pages)
    expect(lines(readFileSync(new URL(name, folder), "utf8")), name).toEqual(lines(text));
});

test("every stream cites a page of the vendor's documentation", async () => {
  for (const [name, text] of await connectorPages()) {
    if (name === "README.md") continue;
    for (const [line] of text.matchAll(/^- \*\*.*$/gm))
      expect(line, name).toMatch(/\[Documentation\]\(https:\/\/[^)]+\)$/);
  }
});
