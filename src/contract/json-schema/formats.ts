// The formats of JSON Schema 2020-12 (validation, section 7.3), asserted: those of ajv-formats but for what it takes beyond their grammars, and the
// international ones that it lacks, each brought to its ASCII form first.
import { domainToASCII } from "node:url";
import type { Ajv2020, Format } from "ajv/dist/2020.js";
import formats, { type FormatName } from "ajv-formats";

const get = (name: FormatName): Format => formats.default.get(name);

/** Adds all of them; answers `ajv`. */
export function addFormats(ajv: Ajv2020): Ajv2020 {
  formats.default(ajv);
  return ajv
    .addFormat("uuid", /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i)
    .addFormat("duration", DURATION)
    .addFormat("time", isTime)
    .addFormat("date-time", isDateTime)
    .addFormat("idn-hostname", isHost)
    .addFormat("idn-email", isEmail)
    .addFormat("iri", (text: string) => fits("uri", encoded(text)))
    .addFormat("iri-reference", (text: string) => fits("uri-reference", encoded(text)));
}

/** RFC 3339, appendix A: units follow each other without a gap. */
const DURATION =
  /^P(?!$)(\d+W|(\d+Y(\d+M(\d+D)?)?|\d+M(\d+D)?|\d+D)?(T(?=\d)(\d+H(\d+M(\d+S)?)?|\d+M(\d+S)?|\d+S)?)?)$/;

const TIME = /^([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.\d+)?(?:z|([+-])([01]\d|2[0-3]):([0-5]\d))$/i;

/** RFC 3339, section 5.6: a leap second is the last one of a day in UTC. */
function isTime(text: string): boolean {
  const [, hour, minute, second, sign, hours = 0, minutes = 0] = TIME.exec(text) ?? [];
  if (second !== "60") return second !== undefined;
  const ahead = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  return (Number(hour) * 60 + Number(minute) - ahead + 2 * DAY) % DAY === DAY - 1;
}

/** Minutes. */
const DAY = 24 * 60;

function isDateTime(text: string): boolean {
  return /^[t ]$/i.test(text.charAt(10)) && fits("date", text.slice(0, 10)) && isTime(text.slice(11));
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
