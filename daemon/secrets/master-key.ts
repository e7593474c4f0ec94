// The master key: 32 random bytes in the user's state folder (0600), never beside the data that it protects.
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { MagicError } from "#contract/errors.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { MASTER_KEY_BYTES, masterKeyOf } from "#shared/master-key.ts";
import { masterKeyFile } from "#shared/paths.ts";
import { WITHOUT_WAITING } from "#shared/plain-file.ts";

/**
 * Reads `<folder>/master.key`, making it on first use. Of two processes that make it at once, one wins and both read its key:
 * the file appears whole, by link.
 *
 * @throws MagicError `state_unusable` when it cannot be read or is not a key. It is never replaced: what it sealed would be lost.
 */
export function openMasterKey(folder: string): Buffer {
  const file = masterKeyFile(folder);
  try {
    return read(file) ?? create(folder, file);
  } catch (error) {
    if (error instanceof MagicError) throw error;
    throw new MagicError("state_unusable", `the master key ${file} cannot be used: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function read(file: string): Buffer | undefined {
  let text: string;
  try {
    text = readFileSync(file, { encoding: "utf8", flag: WITHOUT_WAITING });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const key = masterKeyOf(text);
  if (key === undefined)
    throw new MagicError("state_unusable", `the master key ${file} is damaged`, {
      extra: { next: "Restore it from a copy; what it sealed cannot be read without it." },
    });
  if ((statSync(file).mode & 0o077) !== 0) chmodSync(file, 0o600);
  return key;
}

function create(folder: string, file: string): Buffer {
  makeFolder(folder, 0o700);
  const draft = `${file}.${process.pid}.${randomBytes(4).toString("hex")}`;
  const descriptor = openSync(draft, "wx", 0o600);
  try {
    writeSync(descriptor, `${randomBytes(MASTER_KEY_BYTES).toString("base64url")}\n`);
    fsyncSync(descriptor);
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    closeSync(descriptor);
    unlinkSync(draft);
  }
  const key = read(file);
  if (key === undefined) throw new Error("it vanished while it was made");
  return key;
}
