// The values of a Parquet column one after another, a page at a time. The library makes rows of a whole row group at once: of a million
// records, which is how many other writers put into one, more than a gigabyte.
import type {
  AsyncBuffer,
  ColumnMetaData,
  Compressors,
  DecodedArray,
  FileMetaData,
  RowGroup,
  SchemaTree,
} from "hyparquet";
import type { ParquetParsers } from "hyparquet/src/types.js";

/** Gives the next value; throws where there is none. */
export type NextValue = () => unknown;

export interface Decoding {
  readonly parsers: Partial<ParquetParsers>;
  readonly compressors: Compressors;
}

/** The readers of the group's columns of these names, none of which is nested or repeated. */
export async function columnReaders(
  file: AsyncBuffer,
  metadata: FileMetaData,
  group: RowGroup,
  names: readonly string[],
  decoding: Decoding,
): Promise<NextValue[]> {
  const chunks = names.map((name) => {
    const chunk = group.columns.find(({ meta_data }) => meta_data?.path_in_schema[0] === name);
    if (!chunk?.meta_data || chunk.file_path) throw new Error(`a part of it has no column ${JSON.stringify(name)}`);
    return chunk.meta_data;
  });
  const parts = chunks.map((chunk) => {
    const start = chunk.dictionary_page_offset || chunk.data_page_offset;
    return file.slice(Number(start), Number(start + chunk.total_compressed_size));
  });
  const readers: NextValue[] = [];
  for (const [at, chunk] of chunks.entries())
    readers.push(await columnReader(metadata, chunk, (await parts[at]) as ArrayBuffer, decoding));
  return readers;
}

async function columnReader(
  metadata: FileMetaData,
  chunk: ColumnMetaData,
  bytes: ArrayBuffer,
  { parsers, compressors }: Decoding,
): Promise<NextValue> {
  const [{ parquetHeader, readPage }, { convert, DEFAULT_PARSERS }, { getSchemaPath }] = await Promise.all([
    import("hyparquet/src/column.js"),
    import("hyparquet/src/convert.js"),
    import("hyparquet/src/schema.js"),
  ]);
  const schemaPath = getSchemaPath(metadata.schema, chunk.path_in_schema);
  const { element } = schemaPath.at(-1) as SchemaTree;
  const decoder = {
    ...chunk,
    pathInSchema: chunk.path_in_schema,
    schemaPath,
    element,
    parsers: { ...DEFAULT_PARSERS, ...parsers },
    compressors,
    utf8: false,
  };
  const reader = { view: new DataView(bytes), offset: 0 };
  let dictionary: DecodedArray | undefined;
  let page: DecodedArray = [];
  let next = 0;
  return () => {
    while (next >= page.length) {
      if (reader.offset >= bytes.byteLength - 1)
        throw new Error(`its column ${JSON.stringify(element.name)} ends too early`);
      const header = parquetHeader(reader);
      const { data = [] } = readPage(reader, header, decoder, dictionary, undefined, 0);
      if (header.type === "DICTIONARY_PAGE") dictionary = convert(data, decoder);
      else {
        page = data;
        next = 0;
      }
    }
    return page[next++];
  };
}
