// The way to Node's built-in modules, captured before the realm loses it.
const original = process.getBuiltinModule.bind(process) as (name: string) => unknown;

/** The module, or undefined where Node has none of that name. */
export function getBuiltin(name: string): unknown {
  return original(`node:${name}`) ?? original(name);
}
