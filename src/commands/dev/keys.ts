// Keys of a running command: single presses on a terminal, paused while a question is asked.

export interface Keys {
  /** Runs something that reads the terminal itself, e.g. a prompt. */
  paused<T>(work: () => Promise<T>): Promise<T>;
  close(): void;
}

/** Milliseconds. */
const STOPPED_WITHIN = 100;

/** Calls `onKey` with each key pressed; Ctrl-C comes as "\u0003" since the terminal is raw. Ctrl-Z does what it does elsewhere. */
export function listenToKeys(input: NodeJS.ReadStream, onKey: (key: string) => void): Keys {
  let closed = false;
  const onData = (data: Buffer) => {
    for (const key of data.toString("utf8"))
      if (key === "\u001a") suspend();
      else onKey(key);
  };
  const open = () => {
    if (closed) return;
    input.setRawMode(true);
    input.on("data", onData);
    input.resume();
  };
  const pause = () => {
    input.off("data", onData);
    input.setRawMode(false);
    input.pause();
  };
  const suspend = () => {
    pause();
    // The whole job, as the terminal does. Where no shell controls jobs nothing stops.
    process.kill(0, "SIGTSTP");
    setTimeout(open, STOPPED_WITHIN);
  };
  open();
  return {
    async paused(work) {
      pause();
      try {
        return await work();
      } finally {
        open();
      }
    },
    close() {
      if (closed) return;
      closed = true;
      pause();
    },
  };
}
