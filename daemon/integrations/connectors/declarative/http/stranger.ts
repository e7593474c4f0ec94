// Addresses that came with the data (a next page, a record's own) are not the manifest's word: who at them may know its credentials.
import { sameCompany } from "../../../same-company.ts";
import type { Context } from "../context.ts";

/** The server that the manifest names, or one of the same company (api2.frontapp.com names its next page as acme.api.frontapp.com). */
export async function mayKnow({ http }: Context, named: string, target: string): Promise<boolean> {
  const [from, to] = [URL.parse(named), URL.parse(target)];
  if (!from || !to || http.sameServer(from, to)) return true;
  if (from.protocol !== "https:" || to.protocol !== "https:" || from.port !== to.port) return false;
  return sameCompany(from.hostname, to.hostname);
}

/** A run's data may name ever more. */
const MOST_TOLD = 20;

/** Says once for each server of a run that it is asked without credentials. */
export function tellStranger(context: Context, target: string): void {
  const told = (context.shared.get("strangers") ?? new Set()) as Set<string>;
  context.shared.set("strangers", told);
  const { origin } = new URL(target);
  if (told.has(origin) || told.size >= MOST_TOLD) return;
  told.add(origin);
  context.log(
    "warn",
    `what to read next is at ${origin}, which the manifest does not name: it is asked without credentials`,
  );
}
