// Being told to stop. An AbortSignal satisfies it; what a request makes for itself is lighter than that: an EventTarget costs more
// than all that is done with it.

export interface AbortNotice {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { readonly once: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface AbortSource {
  readonly signal: AbortNotice;
  /** Tells every listener, once; later calls do nothing. */
  abort(): void;
}

/** The lighter counterpart of an AbortController: listeners are told in their order, each once. */
export function abortSource(): AbortSource {
  return new Source();
}

/**
 * Calls the listener as soon as the signal tells to stop: at once where it already has, of which a listener added later would never hear.
 * @returns to be called when there is nothing to stop any more.
 */
export function onAbort(signal: AbortNotice | undefined, listener: () => void): () => void {
  if (signal?.aborted) listener();
  else signal?.addEventListener("abort", listener, { once: true });
  return () => signal?.removeEventListener("abort", listener);
}

/** Resolves after a while, or with false as soon as the signal tells to stop. */
export function pause(ms: number, signal: AbortNotice): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      forget();
      resolve(true);
    }, ms);
    const forget = onAbort(signal, () => {
      clearTimeout(timer);
      resolve(false);
    });
  });
}

/** What the flight comes to; once the signal aborts, its reason: the flight goes on by itself. */
export function untilAborted<T>(flight: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(signal.reason));
    flight.then(resolve, reject).finally(forget);
  });
}

class Source implements AbortSource, AbortNotice {
  aborted = false;
  #listeners: (() => void)[] = [];

  get signal(): AbortNotice {
    return this;
  }

  abort(): void {
    if (this.aborted) return;
    this.aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (!this.aborted) this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners.indexOf(listener);
    if (at >= 0) this.#listeners.splice(at, 1);
  }
}
