// `cache_control`, by which Claude is told what it may cache, on its way to services that refuse what they do not know. Takes anything:
// nobody has checked what goes to these wires.
import { isObject } from "#contract/json-object.ts";

/** Messages or tools without it; the same array where there is none. */
export function unmarked<Item>(items: readonly Item[], inner: "content" | "function"): readonly Item[] {
  return each(items, (item) => {
    const held = Object.hasOwn(item, inner) ? item[inner] : undefined;
    const bare = Array.isArray(held) ? each(held, without) : isObject(held) ? without(held) : held;
    return without(bare === held ? item : { ...item, [inner]: bare });
  }) as readonly Item[];
}

type Members = Record<string, unknown>;

function each(items: readonly unknown[], make: (item: Members) => Members): readonly unknown[] {
  let changed = false;
  const made = items.map((item) => {
    const other = isObject(item) ? make(item) : item;
    if (other !== item) changed = true;
    return other;
  });
  return changed ? made : items;
}

function without(item: Members): Members {
  if (!Object.hasOwn(item, "cache_control")) return item;
  const { cache_control: _mark, ...rest } = item;
  return rest;
}
