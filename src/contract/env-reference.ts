// `${env:NAME}`, the one reference of magic.yaml that is filled in, and what is written as if it were one.

/** The name is its first group. */
export const ENV_REFERENCE = /\$\{env:([A-Za-z_]\w*)\}/g;

/** The text with every reference filled in; a variable that is not set is nothing. */
export function filledFrom(env: Readonly<Record<string, string | undefined>>, text: string): string {
  return text.replace(ENV_REFERENCE, (_, name: string) => env[name] ?? "");
}

/** A reference, as it is written. */
export const env = (name: string): string => `\${env:${name}}`;

export interface OtherReference {
  readonly written: string;
  /** What was meant to be filled in, as far as it says. */
  readonly name: string;
}

// As shells, Compose and others write it, and as connections' own settings have it (`${secret:NAME}`).
const OTHER = /\$\{(?!env:[A-Za-z_]\w*\})(?:[A-Za-z]+:(?![-=?+]))?([A-Za-z_]\w*)?[^}]*\}?/;

/** The first reference that nothing fills in: it would be taken for the value itself, and be somebody's password or key. */
export function otherReference(text: string): OtherReference | undefined {
  const [written, name = "NAME"] = OTHER.exec(text) ?? [];
  return written === undefined ? undefined : { written, name };
}
