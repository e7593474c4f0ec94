// What an older Node does: it cannot turn into the pinned one, so the launcher stays and starts it as a child.

/** To be imported (`--import`) by the launcher. */
export const asOlderNode = `data:text/javascript,if (!process.env.MAGIC_LAUNCHED) {
  delete process.execve;
  Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } });
}`;
