// A temporary folder and an opened state for one test, both gone when it ends.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openStorage } from "#daemon/storage/open.ts";
import type { Storage, StorageOptions } from "#daemon/storage/storage.ts";

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "magic-test-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export async function temporaryStorage(options: Partial<StorageOptions> = {}): Promise<Storage> {
  const storage = await openStorage({ root: temporaryFolder(), ...options });
  onTestFinished(() => storage.close());
  return storage;
}
