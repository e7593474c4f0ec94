import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  beyondPermission,
  columns,
  harmless,
  openTargets,
  runProbes,
  type Targets,
  type Verdict,
} from "./probes/run.ts";

describe.skipIf(process.platform !== "linux" || process.arch !== "x64")("every probe", () => {
  let targets: Targets;
  let valid: string[];
  beforeAll(async () => {
    targets = await openTargets();
    const control = await run("none");
    valid = [...control.values()].filter((one) => one.gained && one.probe !== "exit").map(({ probe }) => probe);
    const invalid = [...control.values()].filter((one) => !one.gained).map(({ probe }) => probe);
    process.stdout.write(
      `${valid.length} probes gain access in an ordinary process; not counted: ${invalid.join(", ")}\n`,
    );
  });
  afterAll(() => targets.close());

  const run = (column: string): Promise<Map<string, Verdict>> =>
    runProbes(targets, columns[column] as never, () => true);
  const gained = (verdicts: Map<string, Verdict>): string[] =>
    valid.filter((probe) => verdicts.get(probe)?.gained !== false);

  test("at least 200 are valid, and none gains anything in a cell", async () => {
    expect(valid.length).toBeGreaterThanOrEqual(200);
    expect(gained(await run("all"))).toEqual([]);
  });

  test("the kernel's layers hold without the permission model and the realm's fence", async () => {
    expect(gained(await run("kernel alone")).filter((probe) => !harmless.has(probe))).toEqual([]);
  });

  test("the realm's fence is not what holds", async () => {
    expect(gained(await run("without the realm")).filter((probe) => !harmless.has(probe))).toEqual([]);
  });

  test("the permission model alone holds but for what is known of it", async () => {
    const open = gained(await run("permission alone")).filter((probe) => !harmless.has(probe));
    expect(open.filter((probe) => !beyondPermission.test(probe))).toEqual([]);
    expect(open.length).toBeGreaterThan(0);
  });

  test.skipIf(process.getuid?.() !== 0)("as nobody, none gains anything either", () => {
    const script = fileURLToPath(new URL("./probes/main.ts", import.meta.url));
    const output = execFileSync(process.execPath, ["--no-warnings", script, "all"], {
      uid: 65534,
      gid: 65534,
      encoding: "utf8",
      maxBuffer: 2 ** 26,
    });
    const verdicts = JSON.parse(output) as Verdict[];
    expect(verdicts.length).toBeGreaterThanOrEqual(valid.length);
    expect(verdicts.filter((one) => one.gained)).toEqual([]);
  });
});
