// Where a contract breaks the callers of another: the places of both schemas.
import type { ControllerContract } from "#contract/controller.ts";
import { OutOfTime, within } from "#contract/time-limit.ts";
import { type Break, narrowings } from "./narrowing.ts";

const MAX_BREAKS = 50;
/** Definitions that refer to each other twice a level double the work with each. */
const COMPARED_MS = 1000;

export function findBreaks(previous: ControllerContract, next: ControllerContract): Break[] {
  return [
    ...inTime("/input_schema", () =>
      narrowings(previous.input_schema, next.input_schema, "/input_schema", "input").slice(0, MAX_BREAKS),
    ),
    ...inTime("/output_schema", () =>
      narrowings(next.output_schema, previous.output_schema, "/output_schema", "output").slice(0, MAX_BREAKS),
    ),
  ];
}

function inTime(pointer: string, compare: () => Break[]): Break[] {
  try {
    return within(COMPARED_MS, compare);
  } catch (error) {
    if (!(error instanceof OutOfTime)) throw error;
    return [{ pointer, detail: "it changed, and what became of it cannot be told in time" }];
  }
}
