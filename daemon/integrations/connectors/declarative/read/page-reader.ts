// The records of one page: as they came, some rows at a time, or all of its answers at once.
import type { Slice } from "../context.ts";
import type { HttpResponse } from "../http/client.ts";
import { decoderOf, type Lost } from "../http/decode.ts";
import { type DecodeParts, rowsDecoderOf } from "../http/decode-parts.ts";
import { type Component, isRecord, typeOf } from "../manifest/component.ts";
import { createTally, type Page, type PageRecords } from "./paginate.ts";
import type { QueryProperties } from "./query-properties.ts";
import type { DataRecord, Selector } from "./records.ts";

/** A page of which nobody made records. */
export interface TakenPage {
  readonly count: number;
  readonly first: DataRecord;
  readonly last: DataRecord;
  records(): DataRecord[];
}

/** What is known of a page before its records are looked at. */
export type About = Pick<Page, "response" | "asked"> & { readonly slice: Slice };

export type Take<Taken> = (response: HttpResponse, path: readonly string[]) => Taken | null;

interface ReadPage<Given> {
  readonly page: Page;
  /** What of it is handed on. */
  readonly given: Given;
  readonly came: PageRecords;
}

export interface PageReader {
  /**
   * Yields all parts of a page but the last, which is returned with what the page was.
   * @param border the records that another page began with: they are not read again.
   */
  read<Taken extends TakenPage>(
    about: About,
    responses: readonly HttpResponse[],
    state: unknown,
    border: ReadonlySet<string>,
    take: Take<Taken> | undefined,
  ): AsyncGenerator<DataRecord[], ReadPage<DataRecord[] | Taken>>;
}

/** @param whole pages must be whole, because they begin anew. */
export function pageReaderOf(
  decoder: Component | undefined,
  selector: Selector,
  properties: QueryProperties | undefined,
  whole: boolean,
  lost: Lost,
): PageReader {
  const decode = decoderOf(decoder, lost);
  // Fields that come in several answers, and pages that begin anew, are put together of whole ones.
  const inRows = properties || whole ? null : rowsDecoderOf(decoder, lost);
  const isJson = !decoder || typeOf(decoder) === "JsonDecoder";
  const plain = isJson && !properties && !whole ? selector.plain : null;

  // A page that goes out as it came.
  function taken<Taken extends TakenPage>(about: About, take: Take<Taken>, path: readonly string[]) {
    const given = take(about.response, path);
    if (!given) return null;
    const { count: size, first, last: lastRecord } = given;
    return { page: { ...about, size, lastRecord }, given, came: { size, first, all: given.records } };
  }

  async function* readInRows(about: About, decodeRows: DecodeParts, state: unknown) {
    const tally = createTally();
    let given: DataRecord[] | undefined;
    let decoded: unknown;
    let lastRecord: Page["lastRecord"];
    for await (const values of decodeRows(about.response)) {
      if (given) yield given;
      decoded ??= values[0];
      const raw = values.flatMap((value) => selector.extract(value));
      tally.add(raw);
      given = selector.select(raw, about.slice, state);
      if (raw.length > 0) lastRecord = lastOf(raw, given);
    }
    const came = tally.came(about.response);
    const page: Page = { ...about, size: came.size, lastRecord, decoded: decoded ?? {} };
    return { page, given: given ?? [], came };
  }

  function selected(
    about: About,
    responses: readonly HttpResponse[],
    state: unknown,
    border: ReadonlySet<string>,
  ): ReadPage<DataRecord[]> {
    const decoded = responses.map(decode);
    const extracted = decoded.map((values) => values.flatMap((value) => selector.extract(value)));
    const came = extracted.length === 1 ? (extracted[0] ?? []) : extracted.flat();
    const unread = border.size ? came.filter((record) => !border.has(JSON.stringify(record))) : came;
    const wanted = selector.select(unread, about.slice, state);
    const given = properties ? properties.join(wanted) : wanted;
    const page: Page = {
      ...about,
      size: Math.max(...extracted.map(({ length }) => length)),
      lastRecord: lastOf(came, given),
      ...(isJson ? {} : { decoded: decoded.at(-1)?.[0] ?? {} }),
    };
    return { page, given, came: { size: came.length, first: came[0], all: () => came } };
  }

  return {
    async *read(about, responses, state, border, take) {
      if (inRows) return yield* readInRows(about, inRows, state);
      return (plain && take && taken(about, take, plain)) || selected(about, responses, state, border);
    },
  };
}

// Templates see the last record as it came out, and what was in it before.
function lastOf(came: readonly unknown[], given: readonly DataRecord[]): Page["lastRecord"] {
  const last = came.at(-1);
  const shown = given.length === came.length ? given.at(-1) : undefined;
  if (!isRecord(last)) return undefined;
  return shown && shown !== last ? { ...last, ...shown } : last;
}
