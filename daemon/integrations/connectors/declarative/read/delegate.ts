// StateDelegatingStream: when the whole is read one way, and when what has changed another.
import { type Context, text } from "../context.ts";
import { durationMs } from "../http/budget.ts";
import { type Component, child, optionalChild } from "../manifest/component.ts";
import { cursorOf } from "./incremental-sync.ts";
import { readState, stateFormOf } from "./state.ts";

/** Whether a read from a state is one of the whole: where there is none, or changes as old as that are kept no more. */
export function readsWhole(context: Context, component: Component): (state: unknown) => boolean {
  const changes = child(component, "incremental_stream");
  const cursor = cursorOf(context, optionalChild(changes, "incremental_sync"), changes);
  const form = stateFormOf(changes, cursor);
  const retention = text(context, component, component["api_retention_period"] ?? "");
  const tooOld = (known: string | null): boolean => {
    const time = retention && known !== null ? cursor?.time(known) : undefined;
    return time !== undefined && Number(time / 1000n) < context.clock.now() - durationMs(retention);
  };
  return (given) => {
    const state = readState(given, form);
    return state.empty || tooOld(state.cursor);
  };
}
