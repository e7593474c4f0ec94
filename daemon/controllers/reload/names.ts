// Who serves under which name in a development session: of two controllers of one name the second waits until the first has given it up.
import type { Watched } from "./watched.ts";

export interface Names {
  /** Who serves under the name, or is about to. */
  holderOf(name: string, besides: Watched): Watched | undefined;
  /** Whether each waits for the next one's name, and the last for that of `one`: names that were exchanged would wait for ever. */
  exchanged(one: Watched, twin: Watched): boolean;
  /** Who had the name until its turn came has none before its new one serves. */
  giveWay(heir: Watched, name: string): void;
  /** Gives up a name that served: it serves until an heir does, or all that are under way want none of it. False where there is an heir. */
  leave(name: string): Promise<boolean>;
}

export function openNames(
  controllers: ReadonlyMap<string, Watched>,
  host: { takeUp(heir: Watched): void; withdraw(name: string): Promise<void> },
): Names {
  /** How whoever left each name last fares, until an heir serves. Those before fare alike. */
  const leaving = new Map<string, Promise<boolean>>();

  function holderOf(name: string, besides: Watched): Watched | undefined {
    return [...controllers.values()].find((other) => other !== besides && other.claims === name);
  }

  function exchanged(one: Watched, twin: Watched): boolean {
    const seen = new Set<Watched>();
    for (let at: Watched | undefined = twin; at && !seen.has(at); ) {
      if (at.waitsFor === null) return false;
      if (at.waitsFor === one.claims) return true;
      seen.add(at);
      at = holderOf(at.waitsFor, at);
    }
    return false;
  }

  function giveWay(heir: Watched, name: string): void {
    leaving.delete(name);
    for (const one of controllers.values()) {
      if (one === heir || one.live?.name !== name) continue;
      one.live = null;
      if (one.claims === name) one.claims = null;
    }
  }

  function leave(name: string): Promise<boolean> {
    const unlessWanted = async (): Promise<boolean> => {
      for (const one of controllers.values()) if (one.waitsFor === name) host.takeUp(one);
      // Whoever is being read just now may want it, too: in a checkout that moves controllers, or where two change places.
      await Promise.all([...controllers.values()].map((one) => one.running));
      const last = leaving.get(name);
      if (last !== left) return last ?? false;
      leaving.delete(name);
      if ([...controllers.values()].some(({ live, claims }) => live?.name === name || claims === name)) return false;
      await host.withdraw(name);
      return true;
    };
    const left = unlessWanted();
    leaving.set(name, left);
    return left;
  }

  return { holderOf, exchanged, giveWay, leave };
}
