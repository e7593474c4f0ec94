// Machines that lack parts of the lockdown: what still runs, what is refused, and that it is said.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";

const main = join(import.meta.dirname, "degraded-main.ts");

interface Report {
  readonly isolation: {
    readonly level?: string;
    readonly code?: string;
    readonly layers?: readonly { name: string; active: boolean; detail?: string }[];
  };
  readonly deployed: unknown;
  readonly output: unknown;
  readonly level: string | null;
}

function without(lacking: readonly string[], allowWeakSandbox = false, limits = "true"): Report {
  const root = mkdtempSync(join(tmpdir(), "magic-degraded-"));
  try {
    const options = JSON.stringify({ lacking, allowWeakSandbox, root });
    const args = ["-c", `${limits}; exec "$0" "$@"`, process.execPath, "--no-warnings", main, options];
    return JSON.parse(execFileSync("sh", args, { encoding: "utf8" })) as Report;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

test("with every call there is, --allow-weak-sandbox weakens nothing", () => {
  expect(without([], true)).toMatchObject({ deployed: "deployed", output: "refused", level: "strong" });
});

test("where the daemon itself may have fewer descriptors than a cell, its cells have no more", () => {
  expect(without([], false, "ulimit -n 60")).toMatchObject({
    deployed: "deployed",
    output: "refused",
    level: "strong",
  });
});

test.each([
  ["landlock_create_ruleset", "landlock"],
  ["close_range", "descriptors closed"],
  ["capset", "capabilities dropped"],
])("without %s, controllers run on the other layers, and the report names what is missing", (call, layer) => {
  const report = without([call]);
  expect(report).toMatchObject({ deployed: "deployed", output: "refused", level: "reduced" });
  const off = report.isolation.layers?.filter(({ active }) => !active);
  expect(off).toEqual([{ name: layer, active: false, detail: expect.stringContaining(call) }]);
});

test.each(["seccomp", "prlimit64"])(
  "without %s, controllers are refused unless the operator allows a weak cell",
  (call) => {
    const refused = { code: "sandbox_unavailable", message: expect.stringContaining(`${call} failed`) };
    expect(without([call])).toMatchObject({ isolation: refused, deployed: refused, level: null });
    const allowed = without([call], true);
    expect(allowed).toMatchObject({
      isolation: { level: "weak" },
      deployed: "deployed",
      output: "refused",
      level: "weak",
    });
  },
);
