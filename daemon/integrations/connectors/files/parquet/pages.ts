// The values of a Parquet column one after another, a page at a time. The library makes rows of a whole row group at once: of a million
// records, which is how many other writers put into one, more than a gigabyte.
import type { AsyncBuffer, ColumnChunk, Compressors, DecodedArray, RowGroup, SchemaTree } from "hyparquet";
import type { ParquetParsers } from "hyparquet/src/types.js";

/** Gives the next value; throws where there is none. */
export type NextValue = () => unknown;

export interface Decoding {
  readonly parsers: ParquetParsers;
  readonly compressors: Compressors;
}

/** What a row group's columns are read with. */
export interface GroupFile {
  readonly file: AsyncBuffer;
  /** The schema's: made once, for of many columns it has as many nodes. */
  readonly tree: SchemaTree;
  readonly decoding: Decoding;
}

/** The reader of the group's column of this name, which is neither nested nor repeated. */
export async function flatReader(group: GroupFile, { columns }: RowGroup, name: string): Promise<NextValue> {
  const chunk = columns.find(({ meta_data }) => meta_data?.path_in_schema[0] === name);
  if (!chunk) throw noColumn(name);
  const nextPage = await pagesOf(group, chunk);
  let page: DecodedArray = [];
  let next = 0;
  return () => {
    while (next >= page.length) {
      const read = nextPage();
      if (read === null) throw endsEarly(name);
      page = read;
      next = 0;
    }
    return page[next++];
  };
}

// Rows of lists, maps and structs that are put together at once.
const NESTED_ROWS = 5000;

/** The reader of the group's column of this name, which is nested or repeated. */
export async function nestedReader(group: GroupFile, part: RowGroup, name: string): Promise<NextValue> {
  const { assembleNested } = await import("hyparquet/src/assemble.js");
  const tree = group.tree.children.find(({ element }) => element.name === name);
  const chunks = part.columns.filter(({ meta_data }) => meta_data?.path_in_schema[0] === name);
  if (!tree || chunks.length === 0) throw noColumn(name);
  const leaves: Leaf[] = [];
  for (const chunk of chunks)
    leaves.push({
      path: chunk.meta_data?.path_in_schema.join(".") ?? "",
      nextPage: await pagesOf(group, chunk),
      rows: [],
    });
  let left = Number(part.num_rows);
  let values: DecodedArray = [];
  let next = 0;
  return () => {
    if (next === values.length) {
      const count = Math.min(NESTED_ROWS, left);
      left -= count;
      const parts = new Map<string, DecodedArray>(leaves.map((leaf) => [leaf.path, takeRows(leaf, count, name)]));
      if (tree.children.length > 0) assembleNested(parts, tree, group.decoding.parsers);
      values = parts.get(name) ?? [];
      next = 0;
    }
    return values[next++];
  };
}

interface Leaf {
  readonly path: string;
  readonly nextPage: NextPage;
  rows: unknown[];
}

// One row more is read, for the last one may go on in the next page.
function takeRows(leaf: Leaf, count: number, name: string): unknown[] {
  while (leaf.rows.length <= count) {
    const page = leaf.nextPage(leaf.rows);
    if (page === null) break;
    if (page !== leaf.rows) for (const value of page) leaf.rows.push(value);
  }
  if (leaf.rows.length < count) throw endsEarly(name);
  const taken = leaf.rows.slice(0, count);
  leaf.rows = leaf.rows.slice(count);
  return taken;
}

const noColumn = (name: string) => new Error(`a part of it has no column ${JSON.stringify(name)}`);
const endsEarly = (name: string) => new Error(`its column ${JSON.stringify(name)} ends too early`);

/** Gives the next page's values; of a repeated column the rows before it with them, of which the last may go on in it. null: there is none. */
type NextPage = (before?: unknown[]) => DecodedArray | null;

async function pagesOf({ file, tree, decoding }: GroupFile, chunk: ColumnChunk): Promise<NextPage> {
  const [{ parquetHeader, readPage }, { convert }, { getTreePath }] = await Promise.all([
    import("hyparquet/src/column.js"),
    import("hyparquet/src/convert.js"),
    import("hyparquet/src/schema.js"),
  ]);
  const { meta_data: told, file_path } = chunk;
  if (!told || file_path) throw new Error("a part of it lies in another file");
  const start = told.dictionary_page_offset || told.data_page_offset;
  const bytes = await file.slice(Number(start), Number(start + told.total_compressed_size));
  const schemaPath = getTreePath(tree, told.path_in_schema);
  const { element } = schemaPath.at(-1) as SchemaTree;
  const decoder = {
    ...told,
    pathInSchema: told.path_in_schema,
    schemaPath,
    element,
    ...decoding,
    utf8: false,
  };
  const reader = { view: new DataView(bytes), offset: 0 };
  let dictionary: DecodedArray | undefined;
  return (before) => {
    while (reader.offset < bytes.byteLength - 1) {
      const header = parquetHeader(reader);
      const { data = [] } = readPage(reader, header, decoder, dictionary, before, 0);
      if (header.type !== "DICTIONARY_PAGE") return data;
      dictionary = convert(data, decoder);
    }
    return null;
  };
}
