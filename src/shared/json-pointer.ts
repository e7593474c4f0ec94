// JSON pointers (RFC 6901).

/** One token of a pointer, escaped (section 3). */
export function escapePointer(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}
