// The cursor that a manifest's incremental_sync asks for.
import type { Context } from "../context.ts";
import { type Component, refuseCustom, typeOf } from "../manifest/component.ts";
import { countCursor } from "./count-cursor.ts";
import type { Cursor } from "./cursor.ts";
import { datetimeCursor } from "./datetime-cursor.ts";

/** `asks`: what makes the requests. */
export function cursorOf(context: Context, component: Component | undefined, asks: Component): Cursor | undefined {
  if (!component) return undefined;
  if (typeOf(component) === "DatetimeBasedCursor") return datetimeCursor(context, component, asks);
  return typeOf(component) === "IncrementingCountCursor" ? countCursor(context, component) : refuseCustom(component);
}
