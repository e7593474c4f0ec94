// A stream as the sandbox has it: records made from its schema, and a state that a second read goes on from. Nobody is asked for anything.
import { seededRandom } from "../../simulation/random.ts";
import { type RecordShape, simulateRecord, timeOf } from "../../simulation/records.ts";
import { dryContext } from "./inspect.ts";
import { strftime } from "./jinja/date-text.ts";
import { DateTime } from "./jinja/datetime.ts";
import { type Component, optionalChild, optionalText, requiredText, typeOf } from "./manifest/component.ts";
import type { Manifest } from "./manifest/load.ts";
import { inlineSchema, streamNamed } from "./manifest/streams.ts";
import { dpathOne } from "./read/dpath.ts";
import { readState } from "./read/state.ts";
import { type StreamEvent, streamComponents, streamOf } from "./stream.ts";

const PAGE = 25;

/** The same records for the same seed. @throws MagicError `not_found` for a stream that there is not. */
export function* sandboxRead(manifest: Manifest, name: string, state: unknown, seed = 1): Generator<StreamEvent> {
  const context = dryContext(manifest);
  const component = streamNamed(name, streamComponents(context, manifest.resolved));
  const { primaryKey, cursorField } = streamOf(context, component);
  const schema = inlineSchema(component) ?? { type: "object", properties: { id: { type: "string" } } };
  const sync = optionalChild(whole(component), "incremental_sync");
  const path = cursorField === undefined ? [] : pathOf(schema, cursorField);
  const cursor = sync && path.length > 0 ? { path, write: writerOf(sync, schema, path) } : undefined;
  const shape: RecordShape = { schema, primaryKey, cursor };
  const count = seededRandom(seed, name, "count").between(40, 120);
  const at = (place: number): string | null => (cursor ? String(cursor.write(timeOf(place, count))) : null);
  // They come oldest first: what was read is what stands before.
  const { cursor: begin } = readState(state, { cursorField, together: false, legacy: false });
  let place = 0;
  if (begin !== null && cursor) for (let each = 0; each < count; each++) if (at(each) === begin) place = each + 1;
  for (; place < count; place += PAGE) {
    const size = Math.min(PAGE, count - place);
    const records = Array.from({ length: size }, (_, more) => simulateRecord(shape, seed, name, place + more, count));
    yield { type: "records", records, partition: {} };
  }
  yield { type: "state", state: { cursor: at(count - 1) } };
}

function whole(component: Component): Component {
  return typeOf(component) === "StateDelegatingStream"
    ? (optionalChild(component, "incremental_stream") ?? component)
    : component;
}

function pathOf(schema: Readonly<Record<string, unknown>>, field: string): string[] {
  return Object.hasOwn((schema["properties"] as object | undefined) ?? {}, field) ? [field] : field.split(".");
}

function writerOf(
  sync: Component,
  schema: unknown,
  path: readonly string[],
): NonNullable<RecordShape["cursor"]>["write"] {
  const type = dpathOne(schema, [...path.flatMap((key) => ["properties", key]), "type"]);
  const numeric = [type].flat().some((each) => each === "integer" || each === "number");
  if (typeOf(sync) !== "DatetimeBasedCursor") return (time) => Math.floor(time / 1000);
  const formats = sync["cursor_datetime_formats"];
  const format =
    Array.isArray(formats) && typeof formats[0] === "string"
      ? formats[0]
      : (optionalText(sync, "datetime_format") ?? requiredText(sync, "datetime_format"));
  return (time) => {
    const text = strftime(new DateTime(BigInt(time) * 1000n, 0), format);
    return numeric ? Number(text) : text;
  };
}
