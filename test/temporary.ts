// Temporary folders and opened states, gone when the test ends, or the file.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, onTestFinished } from "vitest";
import { openStorage } from "#daemon/storage/open.ts";
import type { Storage, StorageOptions } from "#daemon/storage/storage.ts";

/** For one test. */
export function temporaryFolder(): string {
  const folder = newFolder();
  onTestFinished(() => removeFolder(folder));
  return folder;
}

/** For all tests of a file, or of a `describe`. */
export function folderOfFile(): string {
  const folder = newFolder();
  afterAll(() => removeFolder(folder));
  return folder;
}

const newFolder = () => mkdtempSync(join(tmpdir(), "magic-test-"));
const removeFolder = (folder: string) => rmSync(folder, { recursive: true, force: true });

export async function temporaryStorage(options: Partial<StorageOptions> = {}): Promise<Storage> {
  const storage = await openStorage({ root: temporaryFolder(), ...options });
  onTestFinished(() => storage.close());
  return storage;
}
