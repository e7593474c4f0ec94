// The formats of JSON Schema 2020-12 (validation, section 7.3), asserted: those of ajv-formats, and the international ones that it
// lacks, each brought to its ASCII form first.
import { domainToASCII } from "node:url";
import type { Ajv2020, Format } from "ajv/dist/2020.js";
import formats, { type FormatName } from "ajv-formats";

const get = (name: FormatName): Format => formats.default.get(name);

/** Adds all of them; answers `ajv`. */
export function addFormats(ajv: Ajv2020): Ajv2020 {
  formats.default(ajv);
  return ajv
    .addFormat("idn-hostname", isHost)
    .addFormat("idn-email", isEmail)
    .addFormat("iri", (text: string) => fits("uri", encoded(text)))
    .addFormat("iri-reference", (text: string) => fits("uri-reference", encoded(text)));
}

// UTS 46, as URLs do it; a host is not more than that.
function isHost(text: string): boolean {
  const ascii = /[\s/?#@:\\]|(^|\.)-|-(\.|$)/.test(text) ? "" : domainToASCII(text);
  return ascii !== "" && fits("hostname", ascii);
}

function isEmail(text: string): boolean {
  const at = text.lastIndexOf("@");
  const local = text.slice(0, Math.max(at, 0)).replaceAll(/\P{ASCII}/gu, "a");
  return at > 0 && isHost(text.slice(at + 1)) && fits("email", `${local}@example.com`);
}

/** RFC 3987, section 3.1: an IRI is the URI with its other characters percent-encoded. */
function encoded(text: string): string {
  return text.isWellFormed() ? text.replaceAll(/\P{ASCII}/gu, encodeURIComponent) : " ";
}

function fits(name: FormatName, text: string): boolean {
  const format = get(name);
  if (format instanceof RegExp) return format.test(text);
  const validate = typeof format === "function" ? format : (format as { validate: unknown }).validate;
  return validate instanceof RegExp ? validate.test(text) : (validate as (value: string) => boolean)(text);
}
