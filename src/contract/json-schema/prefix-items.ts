// `prefixItems` instead of Ajv's own, whose quick checks leave out what stands beside it for lists that are shorter.
import { _, type CodeKeywordDefinition } from "ajv/dist/2020.js";

export const prefixItems: CodeKeywordDefinition["code"] = (context) => {
  const { gen, data, schema, it } = context;
  const valid = gen.var("valid", true);
  for (const [at] of (schema as unknown[]).entries())
    gen.if(it.allErrors ? _`${data}.length > ${at}` : _`${valid} && ${data}.length > ${at}`, () =>
      context.subschema({ keyword: "prefixItems", schemaProp: at, dataProp: at }, valid),
    );
  context.ok(valid);
};
