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

/** Resolves after a while, or with false as soon as the signal tells to stop. */
export function pause(ms: number, signal: AbortNotice): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(false);
    const over = (rested: boolean) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", aborted);
      resolve(rested);
    };
    const aborted = () => over(false);
    const timer = setTimeout(over, ms, true);
    signal.addEventListener("abort", aborted, { once: true });
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
