// `multipleOf` by the decimals that both numbers are written with: 0.07 is a multiple of 0.01, though their quotient in binary is not whole.
import { _, type CodeKeywordDefinition } from "ajv/dist/2020.js";

export function isMultiple(value: number, of: number): boolean {
  if (!Number.isFinite(value)) return false;
  if (Number.isSafeInteger(value) && Number.isSafeInteger(of)) return value % of === 0;
  const [a, b] = [decimal(value), decimal(of)];
  const scale = Math.min(a.exponent, b.exponent);
  return (a.digits * 10n ** BigInt(a.exponent - scale)) % (b.digits * 10n ** BigInt(b.exponent - scale)) === 0n;
}

/** The shortest decimal number that is read as this one: `digits` times ten to the `exponent`. */
function decimal(number: number): { digits: bigint; exponent: number } {
  const [written = "", exponent = "0"] = String(number).split("e");
  const [whole = "", fraction = ""] = written.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

/** Instead of Ajv's own. */
export const multipleOf: CodeKeywordDefinition["code"] = (context) => {
  const check = context.gen.scopeValue("func", { ref: isMultiple });
  context.pass(_`${check}(${context.data}, ${context.schemaCode})`);
};
