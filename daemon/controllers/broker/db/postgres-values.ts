// What PostgreSQL writes, as controllers are given it.
import pg from "pg";
import { wholeNumbers } from "#shared/json-text.ts";
import { wireValue } from "./meter.ts";

/** Text forms that lose nothing and that READ knows, whatever the server, the database or the login has set. */
export const AS_READ = "SET LOCAL bytea_output = 'hex'; SET LOCAL extra_float_digits = 3; SET LOCAL DateStyle = 'ISO'";

/** Booleans, floats and JSON as such; everything else, int8 and numeric above all, as the database writes it. */
const READ = new Map<number, (text: string) => unknown>([
  [16, (text) => text === "t"],
  ...[21, 23, 26, 700, 701].map((oid) => [oid, (text: string) => wireValue(Number(text))] as const),
  ...[114, 3802].map((oid) => [oid, json] as const),
  [1184, rfc3339],
  [17, (text) => Buffer.from(text.slice(2), "hex").toString("base64")],
]);

/** Its declaration says otherwise. */
const arrays = pg.types.arrayParser as unknown as {
  create(text: string, read: (member: string) => unknown): { parse(): unknown[] };
};

/** Arrays, by the type of their members. */
const MEMBERS = new Map(
  [
    "1000:16 1001:17 1005:21 1007:23 1016:20 1028:26 1021:700 1022:701 1231:1700 1002:18 1003:19 1009:25 1014:1042 1015:1043",
    "2951:2950 199:114 3807:3802 1182:1082 1183:1083 1270:1266 1115:1114 1185:1184 1187:1186 1041:869 651:650",
  ].flatMap((line) => line.split(" ").map((pair) => pair.split(":").map(Number) as [number, number])),
);

/** For the driver: how it reads each type. */
export const types = {
  getTypeParser: (oid: number) => {
    const member = MEMBERS.get(oid);
    if (member === undefined) return READ.get(oid) ?? asWritten;
    const read = READ.get(member) ?? asWritten;
    return (text: string) => arrays.create(text, read).parse();
  },
};

/** A long id keeps its digits, as in a column of its own; a document without one is read without looking at each value. */
function json(text: string): unknown {
  return /\d{16}/.test(text) ? JSON.parse(text, wholeNumbers) : JSON.parse(text);
}

function asWritten(text: string): string {
  return text;
}

function rfc3339(text: string): string {
  const time = new Date(text.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00"));
  if (Number.isNaN(time.getTime())) return text;
  // A Date ends at milliseconds, Postgres at microseconds: what is compared with the row's own time has to be all of it.
  const micros = /\.(\d{4,6})/.exec(text)?.[1];
  return micros === undefined ? time.toISOString() : time.toISOString().replace(/\.\d{3}Z$/, `.${micros}Z`);
}
