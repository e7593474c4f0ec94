// Where a path of an API lies under the address that magic.yaml has for its provider.

/**
 * A query of the address goes along with every request, behind the path. `own`: how an address may end that already has the beginning of the
 * path, as clients of the vendor's write it.
 */
export function endpointUnder(base: string, path: string, own?: RegExp): string {
  const at = base.indexOf("?");
  const query = at < 0 ? "" : base.slice(at + 1);
  const root = (at < 0 ? base : base.slice(0, at)).replace(/\/+$/, "");
  const url = (own ? root.replace(own, "") : root) + path;
  return query === "" ? url : `${url}${path.includes("?") ? "&" : "?"}${query}`;
}
