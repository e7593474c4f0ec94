// Which IP addresses are public. Everything that is not a globally reachable unicast address is refused, and so is every IPv6
// form that carries an IPv4 address inside: https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-.
import { BlockList, isIP } from "node:net";

const closed = new BlockList();

for (const range of [
  "0.0.0.0/8", // this network: 0.0.0.0 reaches this host
  "10.0.0.0/8",
  "100.64.0.0/10", // carrier-grade NAT
  "127.0.0.0/8",
  "169.254.0.0/16", // link-local, cloud metadata
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, broadcast
])
  addRange(range, "ipv4");

for (const range of [
  "2001::/23", // Teredo 2001::/32, benchmarks, ORCHID and other protocol assignments
  "2001:db8::/32",
  "2002::/16", // 6to4
  "2620:4f:8000::/48",
  "3fff::/20", // documentation
])
  addRange(range, "ipv6");

// Global unicast. Outside: ::, ::1, ::ffff:0:0/96, ::a.b.c.d, 64:ff9b::/96 and 64:ff9b:1::/48 (NAT64), 100::/64, fc00::/7,
// fe80::/10, fec0::/10, ff00::/8.
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

function addRange(range: string, family: "ipv4" | "ipv6"): void {
  const [network = "", bits = ""] = range.split("/");
  closed.addSubnet(network, Number(bits), family);
}

/** True for an address on the public internet. Anything that is not an IP address is not. */
export function isPublic(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !closed.check(address, "ipv4");
    case 6:
      // A zone (fe80::1%eth0) is only ever on a link. ISATAP (…:5efe:a.b.c.d) tunnels to an IPv4 address.
      return (
        !address.includes("%") &&
        globalUnicast.check(address, "ipv6") &&
        !closed.check(address, "ipv6") &&
        !/:(?:0|200)?:?5efe:[^:]*:[^:]*$/i.test(address)
      );
    default:
      return false;
  }
}
