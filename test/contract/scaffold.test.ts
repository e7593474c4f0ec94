// What scaffolding does to a project that is there.
import { chmodSync, lstatSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scaffold } from "#scaffold/scaffold.ts";
import { temporaryFolder } from "#test/temporary.ts";

test("a magic.yaml that gets a database stays as private as it was, with its ends of lines, where it was", () => {
  const root = temporaryFolder();
  const kept = join(root, "kept.yaml");
  writeFileSync(kept, "# mine\r\nversion: 1\r\n");
  chmodSync(kept, 0o600);
  symlinkSync(kept, join(root, "magic.yaml"));
  const made = scaffold({ name: "q", template: "db", lang: "ts", root, force: false });
  expect(made.project_files).toContain("magic.yaml (databases.main)");
  expect(readFileSync(kept, "utf8")).toBe(
    "# mine\r\nversion: 1\r\ndatabases:\r\n  main:\r\n    url: sqlite:data/main.db\r\n    mode: read\r\n",
  );
  expect(statSync(kept).mode & 0o777).toBe(0o600);
  expect(lstatSync(join(root, "magic.yaml")).isSymbolicLink()).toBe(true);
});

test("a controller that is scaffolded anew keeps its links as they are", () => {
  const root = temporaryFolder();
  const request = { name: "q", template: "minimal", lang: "ts", root } as const;
  const { path } = scaffold({ ...request, force: false });
  symlinkSync("../../shared.ts", join(path, "shared.ts"));
  scaffold({ ...request, force: true });
  expect(readlinkSync(join(path, "shared.ts"))).toBe("../../shared.ts");
});

test("where no folder can be made, the error names the one that was asked for", () => {
  const root = temporaryFolder();
  symlinkSync("nowhere", join(root, "away"));
  const make = () => scaffold({ name: "q", template: "minimal", lang: "ts", root, dir: "away", force: false });
  expect(make).toThrow(`mkdir '${join(root, "away", "q")}'`);
});
