// A session of a server for as long as a run may be cancelled: a statement under way ends with its session only.

interface Link {
  kill(): void;
  close(): Promise<void>;
}

/** Kills the session when the signal says so or has said so, until it is closed or killed here. */
export function killedBy(signal: AbortSignal, link: Link): Link {
  const stop = () => link.kill();
  const free = () => signal.removeEventListener("abort", stop);
  signal.addEventListener("abort", stop, { once: true });
  // While it was made: nobody tells of that again.
  if (signal.aborted) stop();
  return {
    kill() {
      free();
      link.kill();
    },
    async close() {
      free();
      await link.close();
    },
  };
}
