// docs/providers.md says what the table in the code says. `MAGIC_WRITE_DOCS=1` writes it.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parameters } from "#daemon/gateway/providers/support.ts";

const page = new URL("../../docs/providers.md", import.meta.url);
const MARK = "<!-- support -->";

function table(): string {
  const kinds = ["anthropic", "google", "bedrock", "sandbox"] as const;
  const rows = parameters.map(({ param, had, droppable }) => {
    const cells = kinds.map((kind) => (had.includes(kind) ? "yes" : droppable === false ? "never" : "no"));
    const name = param === "temperature" ? "`temperature` over 1" : `\`${param}\``;
    return `| ${name} | ${cells.join(" | ")} |`;
  });
  return [`| parameter | ${kinds.join(" | ")} |`, "|---|---|---|---|---|", ...rows].join("\n");
}

test("the page of providers lists the parameters as the code has them", () => {
  const text = readFileSync(page, "utf8");
  const [before = "", ...rest] = text.split(MARK);
  const after = rest.join(MARK).replace(/^\n(\n)?(\|[^\n]*\n)*/, "");
  const expected = `${before}${MARK}\n\n${table()}\n\n${after.trimStart()}`;
  if (process.env["MAGIC_WRITE_DOCS"]) writeFileSync(page, expected);
  else expect(cells(text)).toBe(cells(expected));
});

// The formatter aligns the columns of tables: only what stands in the cells counts.
function cells(page: string): string {
  return page.replace(/ *\| */g, "|").replace(/-{3,}/g, "---");
}
