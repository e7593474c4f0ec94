// What a file format must do: tell its schema, read rows, write rows. The engine's values go in and come out.
import type { Batch, FieldCheck, RawStream } from "../../engine/source.ts";
import type { Column, Row, Value } from "../../engine/types.ts";

/** Bytes of a record in a file of text. What is longer is hardly one, and as a text would be held several times. */
export const LONGEST_RECORD = 256 << 20;

export interface FileReader {
  readonly columns: readonly Column[];
  /** Records in the file; null where only reading tells. */
  readonly records: number | null;
  read(): AsyncIterable<Batch>;
  /** The records as they are written, for a file that keeps them, with the values of the key; null: a line has none. */
  lines?(
    key: readonly Column[],
  ): AsyncIterable<readonly { readonly line: string; readonly key: readonly Value[] | null }[]>;
  /** The file's bytes after its header, where another system reads the very same format. */
  raw?(checks: readonly FieldCheck[]): RawStream;
  close(): Promise<void>;
}

export interface FileWriter {
  /** Writes rows; says why where a value has no form in this format. */
  write(
    rows: readonly Row[],
  ): Promise<readonly { readonly row: number; readonly column: string; readonly reason: string }[]>;
  /** Takes records as `lines` gives them. */
  keep?(lines: readonly string[]): Promise<void>;
  /** Bytes written so far. */
  readonly bytes: number;
  /** Flushes to the disk. */
  finish(): Promise<void>;
  /** Closes without caring for the content. */
  abort(): Promise<void>;
}

export interface FileFormat {
  /** Opens the file as it is now; see snapshot.ts. */
  open(path: string): Promise<FileReader>;
  /** `named`: the path that the file will have in the end. */
  create(path: string, columns: readonly Column[], named: string): Promise<FileWriter>;
}
