// Whose a host name is, by the public suffix list (https://publicsuffix.org), with the suffixes that companies let: github.io, herokuapp.com.

// Not on the list, though strangers have names of their own under it.
const alsoShared = new Set(["amazonaws.com", "amazonaws.com.cn"]);

/** True for names of one owner (login.xero.com, identity.xero.com); an address has no owner but itself. */
export async function sameCompany(from: string, to: string): Promise<boolean> {
  // Seldom needed, and large.
  const { getDomain } = (await import("tldts")).default;
  const site = getDomain(from, { allowPrivateDomains: true });
  return site !== null && !alsoShared.has(site) && site === getDomain(to, { allowPrivateDomains: true });
}
