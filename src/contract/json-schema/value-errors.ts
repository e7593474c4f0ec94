// Values against a contract's schema, as the daemon and the fakes of magic/sdk/testing check them alike: a quick check for every value, a second
// that names every problem of refused ones.
import { Ajv2020, type ErrorObject, type KeywordDefinition, type ValidateFunction } from "ajv/dist/2020.js";
import { addFormats } from "./formats.ts";
import { code } from "./generated-code.ts";
import { multipleOf } from "./multiple-of.ts";

type Schema = boolean | Readonly<Record<string, unknown>>;

const NOTHING: readonly ErrorObject[] = [];

/** What does not fit; empty where all does. `own`: keywords in another way than Ajv's. `whole`: the second check is made at once, too. */
export function schemaErrors(
  schema: Schema,
  { own = [], whole = false }: { own?: readonly KeywordDefinition[]; whole?: boolean } = {},
): (value: unknown) => readonly ErrorObject[] {
  const quick = compile(schema, own, false);
  let thorough = whole ? compile(schema, own, true) : undefined;
  const text = JSON.stringify(schema);
  // The quick one of Ajv leaves `contains` out for arrays shorter than `prefixItems`.
  const twice = text.includes('"prefixItems"') && text.includes('"contains"');
  return (value) => {
    const fits = quick(value);
    if (fits && !twice) return NOTHING;
    // All problems of a huge value would be a list as huge.
    if (!fits && JSON.stringify(value)?.length > 256 * 1024) return quick.errors ?? NOTHING;
    thorough ??= compile(schema, own, true);
    // The thorough one takes members for evaluated by a form that does not fit: what either refuses is refused.
    return (thorough(value) ? quick.errors : thorough.errors) ?? NOTHING;
  };
}

// A member called `constructor` is not there because every object inherits one. Only such schemas pay for the look.
const INHERITED = Object.getOwnPropertyNames(Object.prototype).map((name) => JSON.stringify(name));

/** Characters. What Ajv makes of a longer one would take it seconds to tidy up, and takes V8 a while to read. */
export const LARGE = 16 * 1024;

function compile(schema: Schema, own: readonly KeywordDefinition[], allErrors: boolean): ValidateFunction {
  const text = JSON.stringify(schema);
  const ownProperties = INHERITED.some((name) => text.includes(name));
  const options = { strict: false, allowUnionTypes: true, logger: false, validateSchema: false } as const;
  const ajv = addFormats(
    new Ajv2020({
      ...options,
      allErrors,
      ownProperties,
      code: text.length > LARGE ? { ...code, optimize: false } : code,
    }),
  );
  for (const definition of [multipleOf, ...own]) ajv.removeKeyword(String(definition.keyword)).addKeyword(definition);
  if (typeof schema === "boolean") return ajv.compile(schema);
  // A name may be one that Ajv has given already, and references lead by `#` alone; `$async` would answer every value with a promise.
  const { $id: _id, $async: _async, ...rest } = schema;
  return ajv.compile(rest);
}
