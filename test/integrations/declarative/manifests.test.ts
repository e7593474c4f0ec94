import { expect, test } from "vitest";
import { inspectStreams } from "#daemon/integrations/connectors/declarative/inspect.ts";
import { loadManifest } from "#daemon/integrations/connectors/declarative/manifest/load.ts";
import { folder, names, readStreams, textOf } from "./read-twice.ts";

test.skipIf(!folder)(
  "every public manifest builds every stream; those with Python components name them",
  { timeout: 120_000 },
  async () => {
    const refused: string[] = [];
    let streams = 0;
    for (const name of names) {
      try {
        for (const stream of await inspectStreams(loadManifest(textOf(name)))) {
          streams++;
          if (stream.refused && !/written in Python/.test(stream.refused))
            refused.push(`${name}/${stream.name}: ${stream.refused}`);
        }
      } catch (error) {
        if (!/written in Python/.test(String(error))) refused.push(`${name}: ${error}`);
      }
    }
    expect(refused).toEqual([]);
    expect(streams).toBeGreaterThan(1000);
  },
);

// All of them in manifests.deep.test.ts.
test.skipIf(!folder)(
  "streams of public manifests read their pages, and the second read goes on from the state",
  { timeout: 240_000 },
  async () => {
    const { total, problems } = await readStreams((name, at) => at === 0 && names.indexOf(name) % 5 === 0);
    expect(problems.length / total, problems.join("\n")).toBeLessThan(0.1);
  },
);
