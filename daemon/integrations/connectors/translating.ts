// What a driver throws, in the words of syncs.

/** Does the work; what it throws is thrown as `translate` has it. */
export type Translating = <T>(work: () => T | Promise<T>) => Promise<T>;

export function translating(translate: (error: unknown) => unknown): Translating {
  return async (work) => {
    try {
      return await work();
    } catch (error) {
      throw translate(error);
    }
  };
}
