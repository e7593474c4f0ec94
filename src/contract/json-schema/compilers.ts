// The two Ajvs of the checks: kept, because compiling the meta-schemas takes longer than all the rest.
import { Ajv2020 } from "ajv/dist/2020.js";
import { openAjv } from "./ajv.ts";
import { compileWithUnevaluated } from "./unevaluated.ts";
import type { Schema } from "./walk.ts";

let metaAjv: Ajv2020 | undefined;
let schemaAjv: Ajv2020 | undefined;

/** Validates schemas against the meta-schemas. */
export function metaValidator(): Ajv2020 {
  metaAjv ??= new Ajv2020({ strict: false, allErrors: true, verbose: true, logger: false });
  return metaAjv;
}

/** The formats that schemas may name. */
export function formatNames(): string[] {
  return Object.keys(compiler().formats);
}

const UNTIDIED = { code: { optimize: false } };

function compiler(): Ajv2020 {
  schemaAjv ??= openAjv(UNTIDIED);
  return schemaAjv;
}

/** Ajv's own reason not to compile a schema; null: it does. Throws a RangeError for one that is too large. */
export function whyNotCompiled({ $schema: _dialect, $id: _id, ...schema }: Schema): string | null {
  try {
    if (JSON.stringify(schema).includes('"unevaluated')) compileWithUnevaluated(openAjv(UNTIDIED), schema);
    else compiler().compile(schema);
    schemaAjv?.removeSchema(schema);
    return null;
  } catch (error) {
    schemaAjv = undefined;
    if (error instanceof RangeError) throw error;
    return (error as Error).message;
  }
}

/** Makes both anew: they may have been stopped in the middle of anything. */
export function forgetCompilers(): void {
  metaAjv = schemaAjv = undefined;
}
