// The state of syncs whose destination has no transactions: a JSON file, replaced as a whole. What is about to be put in place is
// noted first (`pending`), by the inode of the new file, so that a crash between the two renames is told apart from one before both.
import { readFileSync, statSync } from "node:fs";
import { MagicError } from "#contract/errors.ts";
import { isObject } from "#contract/json-object.ts";
import { replaceFile } from "#shared/replace-file.ts";
import { committedOf } from "../../engine/committed.ts";
import type { CommittedState } from "../../engine/destination.ts";

type Streams = Readonly<Record<string, CommittedState>>;

interface Document {
  readonly version: 1;
  readonly sync_id: string;
  readonly streams: Streams;
  readonly pending?: Change & { readonly inode: string };
  /** Of other syncs into the same file, by their ids: what they appended must not come twice. */
  readonly others?: Readonly<Record<string, Streams>>;
}

export interface Change {
  readonly stream: string;
  readonly committed: CommittedState;
  /** True: what other syncs brought has gone. */
  readonly alone?: boolean;
}

export interface StateFile {
  committed(stream: string): CommittedState;
  /** Notes what `file`, once it is in its place, brings. */
  prepare(change: Change, file: string): Promise<void>;
  commit(change: Change): Promise<void>;
}

/** `target`: the file that the pending change puts in place. */
export async function openStateFile(path: string, syncId: string, target: string | null): Promise<StateFile> {
  let document = ofSync(syncId, settled(read(path, syncId), target));
  if (!isObject(document.streams) || !Object.values(document.streams).every(committedOf)) throw unreadable(path);
  const write = async (next: Document) => {
    await replaceFile(path, `${JSON.stringify(next)}\n`);
    document = next;
  };
  return {
    committed: (stream) =>
      (Object.hasOwn(document.streams, stream) ? committedOf(document.streams[stream]) : null) ?? {
        state: null,
        schema: null,
      },
    prepare: (change, file) => write({ ...document, pending: { ...change, inode: inodeOf(file) ?? "" } }),
    commit: (change) => write(changed(document, change)),
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
    const found: unknown = JSON.parse(text);
    if (isObject(found)) return { ...empty, ...found };
  } catch {
    // Said below.
  }
  throw unreadable(path);
}

// A crash between the two renames: what was pending is in its place.
function settled(document: Document, target: string | null): Document {
  const { pending } = document;
  return pending && target !== null && inodeOf(target) === pending.inode ? changed(document, pending) : document;
}

function changed(document: Document, { stream, committed, alone = false }: Change): Document {
  const { pending: _, others, ...rest } = document;
  return { ...rest, ...(alone || !others ? {} : { others }), streams: { ...rest.streams, [stream]: committed } };
}

function ofSync(syncId: string, document: Document): Document {
  if (document.sync_id === syncId) return document;
  const { [syncId]: streams = {}, ...others } = document.others ?? {};
  return { version: 1, sync_id: syncId, streams, others: { ...others, [document.sync_id]: document.streams } };
}

const unreadable = (path: string) =>
  new MagicError("source_failed", `The state file ${path} cannot be read: it was left as it is.`);

function inodeOf(path: string): string | null {
  try {
    const { ino, dev } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return null;
  }
}
