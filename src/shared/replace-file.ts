// A file that is there whole, as it was or as it is now, whatever ends this process.
import { open, rename } from "node:fs/promises";

/** For its owner alone. `durable`: also whatever ends the machine. Two at once for one path are the caller's to keep apart. */
export async function replaceFile(path: string, text: string, durable = true): Promise<void> {
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(text);
    if (durable) await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
}
