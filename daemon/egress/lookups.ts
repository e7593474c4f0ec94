// The system looks names up on threads that the whole daemon shares, and a name whose servers are silent keeps one for ten seconds and more.
// So each name is asked for once at a time, and one guard has only so many under way: what hangs holds up its own kind alone.
import { openPlaces } from "#shared/places.ts";

export type Resolver = (hostname: string) => Promise<readonly string[]>;

/** Of the sixteen that are under way in a daemon at most: half of UV_THREADPOOL_SIZE, see src/client/daemon/spawn.ts. */
const AT_ONCE = 5;
const MOST_WAITING = 100;

export function boundedLookups(resolver: Resolver): Resolver {
  const underWay = new Map<string, Promise<readonly string[]>>();
  const places = openPlaces({
    atOnce: AT_ONCE,
    mostWaiting: MOST_WAITING,
    refusal: () => new Error("too many other names are waited for"),
  });
  return (name) => {
    let found = underWay.get(name);
    if (found === undefined) {
      found = places.hold(() => resolver(name)).finally(() => underWay.delete(name));
      underWay.set(name, found);
    }
    return found;
  };
}
