// What PostgreSQL writes, as controllers are given it, and what it takes.
import pg from "pg";
import { wholeNumbers } from "#shared/json-text.ts";
import { bytesOf, eachMember, unmarked, wireValue } from "./meter.ts";

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
    "1017:600 1018:601 1019:602 1027:604 629:628 719:718 791:790 1040:829 775:774 1561:1560 1563:1562 143:142 4073:4072",
    "3905:3904 3907:3906 3909:3908 3911:3910 3913:3912 3927:3926 6150:4451 6151:4532 6152:4533 6153:4534 6155:4535 6157:4536",
    "3643:3614 3645:3615 2287:2249 2210:2205 3221:3220",
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
  return /\d{16}|e\+?\d{3}/i.test(text) ? JSON.parse(text, exactly) : JSON.parse(text);
}

/** What no double holds is text: 1e400 would be infinite, and null to the handler. */
function exactly(this: unknown, key: string, value: unknown, context?: { source?: string }): unknown {
  const whole = wholeNumbers.call(this, key, value, context);
  return typeof whole === "number" && !Number.isFinite(whole) ? context?.source : whole;
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

/** A parameter as the driver takes it: a list is an array. */
export function parameterOf(value: unknown): unknown {
  return eachMember(value, (member) => unmarked(member, timeOf, bytesOf));
}

/** Postgres counts years before the first one backwards, and takes no sign: RFC 3339 ends at 0000 and 9999, a Date in both directions far beyond. */
function timeOf(time: string): string {
  const end = time.indexOf("-", 1);
  const year = Number(time.slice(0, end));
  const written = String(year > 0 ? year : 1 - year).padStart(4, "0") + time.slice(end);
  return year > 0 ? written : `${written} BC`;
}
