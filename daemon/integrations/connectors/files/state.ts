// The state of syncs whose destination has no transactions: a JSON file, replaced as a whole. What is about to be put in place is
// noted first (`pending`), by the inode of the new file, so that a crash between the two renames is told apart from one before both.
// One file may be the state of several objects, each into a file of its own: what one changes is changed in what the others have left.
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
  /** By the files whose places are to be taken. */
  readonly pending?: Readonly<Record<string, Change & { readonly inode: string }>>;
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

/** `target`: the file that a pending change puts in place. `alone`: does the work while no other run changes the state file. */
export async function openStateFile(
  path: string,
  syncId: string,
  target: string | null,
  alone: (work: () => Promise<void>) => Promise<void>,
): Promise<StateFile> {
  const current = (): Document => {
    const document = ofSync(syncId, settled(read(path, syncId), target));
    if (!isObject(document.streams) || !Object.values(document.streams).every(committedOf)) throw unreadable(path);
    return document;
  };
  const { streams } = current();
  const write = (next: (document: Document) => Document) =>
    alone(() => replaceFile(path, `${JSON.stringify(next(current()))}\n`));
  return {
    committed: (stream) =>
      (Object.hasOwn(streams, stream) ? committedOf(streams[stream]) : null) ?? { state: null, schema: null },
    prepare: (change, file) =>
      write((document) => {
        const inode = inodeOf(file) ?? "";
        return { ...document, pending: { ...document.pending, [target ?? ""]: { ...change, inode } } };
      }),
    commit: (change) => write((document) => changed(document, change)),
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

// A crash between the two renames: what was pending is in its place. Else it never came there.
function settled(document: Document, target: string | null): Document {
  const { [target ?? ""]: mine, ...pending } = document.pending ?? {};
  const rest = { ...document, pending };
  return mine && target !== null && inodeOf(target) === mine.inode ? changed(rest, mine) : rest;
}

function changed(document: Document, { stream, committed, alone = false }: Change): Document {
  const { others, ...rest } = document;
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
