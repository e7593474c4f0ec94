// Percent-encoded texts (RFC 3986, section 2.1).

/** The text decoded; as it stands where it is not encoded soundly. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
