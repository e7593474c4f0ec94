// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references look like templates
import { execFileSync, fork } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openMasterKey } from "#daemon/secrets/master-key.ts";
import { resolveReferences } from "#daemon/secrets/references.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import { temporaryFolder } from "#test/temporary.ts";

test("the master key is made once, private, and read again", () => {
  const folder = join(temporaryFolder(), "state");
  const key = openMasterKey(folder);
  expect(key).toHaveLength(32);
  expect(openMasterKey(folder)).toEqual(key);
  expect(statSync(join(folder, "master.key")).mode & 0o777).toBe(0o600);
});

test("processes that make it at once end up with one key", async () => {
  const folder = temporaryFolder();
  const script = join(folder, "open.mjs");
  const module = new URL("../../daemon/secrets/master-key.ts", import.meta.url);
  writeFileSync(
    script,
    `const { openMasterKey } = await import(${JSON.stringify(module.href)}); process.send(openMasterKey(${JSON.stringify(folder)}).toString("hex"));`,
  );
  const keys = await Promise.all(
    Array.from({ length: 6 }, () => {
      const child = fork(script);
      return new Promise((resolve) => child.once("message", resolve));
    }),
  );
  expect(new Set(keys)).toEqual(new Set([openMasterKey(folder).toString("hex")]));
});

test("a damaged master key is refused and left as it is", () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "master.key"), "short\n");
  expect(() => openMasterKey(folder)).toThrow(/damaged/);
  expect(readFileSync(join(folder, "master.key"), "utf8")).toBe("short\n");
});

test("a pipe in the master key's place is no key, and is not waited for", () => {
  const folder = temporaryFolder();
  execFileSync("mkfifo", [join(folder, "master.key")]);
  expect(() => openMasterKey(folder)).toThrow(/damaged/);
});

test("a sealed value opens only in its place, unchanged, for its purpose and with its key", () => {
  const key = openMasterKey(temporaryFolder());
  const place = { tenant: "sandbox", row: "conn_1", field: "credentials" };
  const sealer = createSealer(key, "connections");
  const sealed = sealer.seal("s3cret ü", place);
  expect(sealed).not.toContain("s3cret");
  expect(sealer.seal("s3cret ü", place)).not.toBe(sealed);
  expect(sealer.open(sealed, place)).toBe("s3cret ü");
  for (const other of [
    { ...place, tenant: "live" },
    { ...place, row: "conn_2" },
    { ...place, field: "config" },
  ])
    expect(() => sealer.open(sealed, other)).toThrow(/does not open/);
  expect(() => createSealer(key, "webhooks").open(sealed, place)).toThrow();
  expect(() => createSealer(Buffer.alloc(32, 1), "connections").open(sealed, place)).toThrow();
  for (let i = 0; i < sealed.length; i++) {
    const changed = sealed.slice(0, i) + (sealed[i] === "A" ? "B" : "A") + sealed.slice(i + 1);
    expect(() => sealer.open(changed, place)).toThrow();
  }
  expect(() => sealer.open(sealed.slice(0, 20), place)).toThrow();
});

test("references are replaced at any depth, and a missing one is named without values", () => {
  const lookUp = (kind: string, name: string) => (name === "TOKEN" ? `${kind}-value` : undefined);
  expect(resolveReferences({ a: ["x ${env:TOKEN}", 1, null], b: { c: "${secret:TOKEN}" } }, lookUp)).toEqual({
    a: ["x env-value", 1, null],
    b: { c: "secret-value" },
  });
  expect(() => resolveReferences({ a: "${env:TOKEN} ${env:OTHER}" }, lookUp)).toThrow("${env:OTHER} is not set");
});
