// `properties` where there are many. For each, Ajv's own quick check stands inside the brackets of the one before, and of some 1,500 V8's
// parser runs out of stack.
import { _, type CodeKeywordDefinition } from "ajv/dist/2020.js";
import { allSchemaProperties, propertyInData } from "ajv/dist/vocabularies/code.js";

const MANY = 200;

export function properties(own: CodeKeywordDefinition["code"]): CodeKeywordDefinition["code"] {
  return (context, ...rest) => {
    const { gen, data, schema, it } = context;
    const names = allSchemaProperties(schema);
    if (it.allErrors || names.length < MANY) {
      own(context, ...rest);
      return;
    }
    const valid = gen.var("valid", true);
    for (const name of names)
      gen.if(_`${valid} && ${propertyInData(gen, data, name, it.opts.ownProperties)}`, () =>
        context.subschema({ keyword: "properties", schemaProp: name, dataProp: name }, valid),
      );
    context.ok(valid);
  };
}
