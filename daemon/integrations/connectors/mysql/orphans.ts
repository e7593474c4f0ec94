// The order of rows that refer to others of their own table. InnoDB looks for a parent as soon as a row is written, other databases when
// the statement ends: so parents are written before their children, and children whose parents have not come yet wait here.
import type { Reject } from "#contract/sync.ts";
import { DOUBLED, keyPlaces, keyText } from "../../engine/keys.ts";
import { keyOf } from "../../engine/rejects.ts";
import type { Row } from "../../engine/types.ts";
import { ident } from "./connect.ts";
import type { Referring } from "./referring.ts";
import { type InsertTarget, tuplesOf } from "./write-rows.ts";

export interface PlacedRow {
  readonly row: Row;
  /** In reading order, from 0. */
  readonly place: number;
}

export interface Orphans {
  /** Of the rows those that can be written now, in the order for it. The others wait. */
  admit(rows: readonly PlacedRow[]): Promise<readonly PlacedRow[]>;
  /** True where no more should wait. */
  readonly full: boolean;
  /** Of those that wait the ones whose parents have come, in the order for it. */
  settled(): Promise<readonly PlacedRow[]>;
  /** True while rows wait for others. */
  readonly waiting: boolean;
  /** The settled ones; then, as far as is known, the others. */
  release(): Promise<readonly PlacedRow[]>;
  /** Rows that waited until a later one had their key, since it was last asked. */
  doubled(): readonly Reject[];
}

const MOST_BYTES = 64 << 20;
const ROW_BYTES = 200;
const ASKED_AT_ONCE = 1000;

/** `keys`: the foreign keys by which the table names itself. */
export function createOrphans(target: InsertTarget, keys: readonly Referring[]): Orphans {
  const { plan } = target;
  const placesOf = (quoted: readonly string[]) =>
    quoted.map((one) => plan.columns.findIndex(({ name }) => ident(name) === one));
  const links = keys
    .map(({ columns }) => ({
      own: placesOf(columns.map(({ own }) => own)),
      referred: placesOf(columns.map(({ referred }) => referred)),
    }))
    .filter(({ own, referred }) => ![...own, ...referred].includes(-1));
  const keyed = keyPlaces(plan);
  const waiting = new Map<string, PlacedRow>();
  let size = 0;
  const doubled: Reject[] = [];

  const valuesAt = (row: Row, places: readonly number[]) => places.map((at) => row[at] ?? null);
  // A row whose key is null is told from all others, and refused when it is written.
  const nameOf = ({ row, place }: PlacedRow) => {
    const key = valuesAt(row, keyed);
    return key.length === 0 || key.includes(null) ? String(place) : keyText(key);
  };
  /** By what its children name a row, for each of the links. */
  const namesOf = (row: Row) => links.map(({ referred }, at) => `${at}${keyText(valuesAt(row, referred))}`);
  const parentsOf = (row: Row) => {
    const names = namesOf(row);
    return links.flatMap(({ own }, at) => {
      const values = valuesAt(row, own);
      const parent = `${at}${keyText(values)}`;
      return values.includes(null) || parent === names[at] ? [] : [{ parent, at }];
    });
  };

  // Of the parents that are not among the rows those that the table has, told by their texts.
  const inTable = async (rows: readonly PlacedRow[], among: ReadonlySet<string>) => {
    const found = new Set<string>();
    for (const [at, { own, referred }] of links.entries()) {
      const children = new Map<string, Row>();
      for (const { row } of rows)
        for (const one of parentsOf(row)) if (one.at === at && !among.has(one.parent)) children.set(one.parent, row);
      const asked = [...children.values()];
      const columns = referred.map((place) => ident(plan.columns[place]?.name ?? "")).join(", ");
      for (let from = 0; from < asked.length; from += ASKED_AT_ONCE) {
        const tuples = tuplesOf(target, asked.slice(from, from + ASKED_AT_ONCE), own);
        const there = await target.link.rows(
          `SELECT ${columns} FROM ${target.table} WHERE (${columns}) IN (${tuples})`,
        );
        for (const row of there) found.add(`${at}${keyText(Object.values(row))}`);
      }
    }
    return found;
  };

  // Parents before children, else as they were; the others are those who wait for a parent.
  const inOrder = async (rows: readonly PlacedRow[]) => {
    const among = new Set(rows.flatMap(({ row }) => namesOf(row)));
    const there = await inTable(rows, among);
    const children = new Map<string, PlacedRow[]>();
    const missing = new Map<PlacedRow, number>();
    const ready: PlacedRow[] = [];
    for (const one of rows) {
      const parents = parentsOf(one.row).filter(({ parent }) => !there.has(parent));
      missing.set(one, parents.length);
      if (parents.length === 0) ready.push(one);
      for (const { parent } of parents) {
        const brothers = children.get(parent);
        if (brothers) brothers.push(one);
        else children.set(parent, [one]);
      }
    }
    // Grows while it is gone through.
    for (const one of ready)
      for (const name of namesOf(one.row)) {
        for (const child of children.get(name) ?? []) {
          const left = (missing.get(child) ?? 0) - 1;
          missing.set(child, left);
          if (left === 0) ready.push(child);
        }
        children.delete(name);
      }
    return { ready, others: rows.filter((one) => missing.get(one) !== 0) };
  };

  const wait = (rows: readonly PlacedRow[]) => {
    for (const one of rows) {
      waiting.set(nameOf(one), one);
      size += one.row.reduce((sum, value) => sum + (value?.length ?? 0), ROW_BYTES);
    }
  };
  const settled = async () => {
    const { ready, others } = await inOrder([...waiting.values()]);
    waiting.clear();
    size = 0;
    wait(others);
    return ready;
  };

  return {
    admit: async (given) => {
      const latest = new Map<string, PlacedRow>();
      const shown = keyOf(plan);
      for (const one of given) {
        const name = nameOf(one);
        const earlier = latest.get(name) ?? waiting.get(name);
        if (earlier && plan.kind === "replace")
          doubled.push({ key: shown(earlier.row, earlier.place), column: plan.primaryKey[0] ?? null, reason: DOUBLED });
        waiting.delete(name);
        latest.delete(name);
        latest.set(name, one);
      }
      const { ready, others } = await inOrder([...latest.values()]);
      wait(others);
      return ready;
    },
    get full() {
      return size > MOST_BYTES;
    },
    settled,
    get waiting() {
      return waiting.size > 0;
    },
    release: async () => {
      const ready = await settled();
      const others = [...waiting.values()];
      waiting.clear();
      size = 0;
      return [...ready, ...others];
    },
    doubled: () => doubled.splice(0),
  };
}
