// The manifest that a draft gives: whatever names the vendor's answers have, they stay names.
import { expect, test } from "vitest";
import { manifestText } from "#client/connectors/draft.ts";
import { json, read, vendor } from "./one-stream.ts";

test("names with quotes and braces lead to the records and to the next page", async () => {
  const [records, next] = ["it's {{ 7 + 7 }}", "ne'x\\t') ~ config['token'] ~ ('"];
  const asked: (string | null)[] = [];
  const origin = await vendor(({ at }, response) => {
    asked.push(at.searchParams.get("cursor"));
    json(response, { [records]: [{ id: asked.length }], paging: { [next]: asked.length === 1 ? "more" : null } });
  });
  const draft = manifestText({
    ...{ name: "shop", baseUrl: origin, auth: { type: "none" }, stream: "items", path: "items", parameters: {} },
    ...{ recordsPath: [records], primaryKey: ["id"], cursor: null, schema: { type: "object", properties: {} } },
    pagination: { type: "cursor", path: ["paging", next], parameter: "cursor" },
  });
  expect((await read(draft, { config: { token: "hush" } })).records).toEqual([{ id: 1 }, { id: 2 }]);
  expect(asked).toEqual([null, "more"]);
});
