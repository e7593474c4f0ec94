// Whether a host is this machine.

/** True for `localhost` and for addresses of 127.0.0.0/8, ::1 and their IPv4-mapped form; false for any other name. */
export function isLoopback(host: string | undefined): boolean {
  if (host === undefined) return false;
  if (host === "127.0.0.1" || host === "localhost") return true;
  const name = host.toLowerCase().replace(/^\[|\]$/g, "");
  const v4 = name.startsWith("::ffff:") ? name.slice("::ffff:".length) : name;
  if (name === "localhost" || name === "::1") return true;
  const octets = /^127\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(v4);
  return octets?.slice(1).every((octet) => Number(octet) <= 255) ?? false;
}
