// Tool-call ids, and names of earlier calls, between wires. Gemini signs its thoughts and wants the signature back with the call; clients
// send back only id, type and function. So, where the wire has no id of its own, the signature travels in the id that we make. Other
// providers refuse such long ids: on the way to them it is replaced by a short one, the same one wherever it stands.
import { createHash, randomBytes } from "node:crypto";

const MARK = "__ts";

/** An id that carries a thought signature (base64, any length). */
export function signedId(signature: string): string {
  const base = `call_${randomBytes(12).toString("hex")}`;
  const bytes = Buffer.from(signature, "base64");
  // Canonical base64 shrinks to its bytes; anything else is kept letter by letter.
  if (bytes.toString("base64") === signature) return `${base}${MARK}b_${bytes.toString("base64url")}`;
  return `${base}${MARK}t_${Buffer.from(signature).toString("base64url")}`;
}

export function freshId(): string {
  return `call_${randomBytes(12).toString("hex")}`;
}

/** True for ids that were made here. */
export function isOurs(id: string): boolean {
  return /^call_[0-9a-f]{24}/.test(id);
}

/** True for ids that carry a signature. Takes anything: ids of requests that nobody has checked. */
export function isSigned(id: unknown): boolean {
  return typeof id === "string" && id.startsWith("call_") && id.includes(MARK);
}

/** The signature in an id, or null. */
export function signatureOf(id: string): string | null {
  const at = id.indexOf(MARK);
  if (at < 0) return null;
  const kind = id.slice(at + MARK.length, at + MARK.length + 2);
  const bytes = Buffer.from(id.slice(at + MARK.length + 2), "base64url");
  if (kind === "b_") return bytes.toString("base64");
  return kind === "t_" ? bytes.toString("utf8") : null;
}

/** The id, or a short one made of it: letters, digits, `_`, `-`, at most `longest` characters. */
export function portableId(id: string, longest: number): string {
  if (id.length <= longest && /^[a-zA-Z0-9_-]+$/.test(id)) return id;
  return `call_${createHash("sha256").update(id).digest("hex").slice(0, 24)}`;
}

/** The name of an earlier call, or one made of it that Claude and Bedrock take: a model may have called what nobody offered (`browser.tabs.open`). */
export function portableName(name: string, longest: number): string {
  if (name.length <= longest && /^[a-zA-Z0-9_-]+$/.test(name)) return name;
  return name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(0, longest) || "_";
}

/** The id, or one made of it as Mistral's models want them: nine letters and digits. */
export function shortId(id: string): string {
  return /^[a-zA-Z0-9]{9}$/.test(id) ? id : createHash("sha256").update(id).digest("hex").slice(0, 9);
}
