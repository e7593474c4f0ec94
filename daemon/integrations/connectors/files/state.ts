// The state of syncs whose destination has no transactions: a JSON file, replaced as a whole. What is about to be put in place is
// noted first (`pending`), by the inode of the new file, so that a crash between the two renames is told apart from one before both.
import { readFileSync, renameSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { MagicError } from "#contract/errors.ts";
import type { CommittedState } from "../../engine/destination.ts";

interface Document {
  readonly version: 1;
  readonly sync_id: string;
  readonly streams: Readonly<Record<string, CommittedState>>;
  readonly pending?: { readonly inode: string; readonly stream: string; readonly committed: CommittedState };
}

export interface StateFile {
  committed(stream: string): CommittedState;
  /** Notes what `file`, once it is in its place, brings. */
  prepare(stream: string, committed: CommittedState, file: string): Promise<void>;
  commit(stream: string, committed: CommittedState): Promise<void>;
}

/** `target`: the file that the pending change puts in place. */
export async function openStateFile(path: string, syncId: string, target: string | null): Promise<StateFile> {
  let document = read(path, syncId);
  const { pending } = document;
  if (pending && target !== null && inodeOf(target) === pending.inode)
    document = { ...document, streams: { ...document.streams, [pending.stream]: pending.committed } };
  const write = async (next: Document) => {
    const file = await open(`${path}.new`, "w", 0o600);
    await file.writeFile(`${JSON.stringify(next)}\n`);
    await file.sync();
    await file.close();
    renameSync(`${path}.new`, path);
    document = next;
  };
  return {
    committed: (stream) => document.streams[stream] ?? { state: null, schema: null },
    prepare: (stream, committed, file) =>
      write({ ...document, pending: { inode: inodeOf(file) ?? "", stream, committed } }),
    commit: (stream, committed) => {
      const { pending: _, ...rest } = document;
      return write({ ...rest, streams: { ...document.streams, [stream]: committed } });
    },
  };
}

function read(path: string, syncId: string): Document {
  const empty: Document = { version: 1, sync_id: syncId, streams: {} };
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return empty;
    throw unreadable(path);
  }
  try {
    const found = JSON.parse(text) as Partial<Document>;
    if (found.sync_id !== syncId) return empty;
    const document = { ...empty, ...found };
    if (Object.values(document.streams).every(isCommitted)) return document;
  } catch {
    // Said below.
  }
  throw unreadable(path);
}

const unreadable = (path: string) =>
  new MagicError("source_failed", `The state file ${path} cannot be read: it was left as it is.`);

// People edit their states; a number is meant as its text.
function isCommitted({ state, schema }: CommittedState): boolean {
  const cursor = state?.cursor ?? null;
  return (
    (typeof state === "object" || state === undefined) &&
    (cursor === null || /^(string|number)$/.test(typeof cursor)) &&
    (schema === null || schema === undefined || Array.isArray(schema.columns))
  );
}

function inodeOf(path: string): string | null {
  try {
    const { ino, dev } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}
