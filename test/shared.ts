// Material beside the repository that some tests use: specifications, recorded answers. Absent in a plain clone; those tests skip.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folders = ["../../shared/", "../../../shared/"].map((path) => fileURLToPath(new URL(path, import.meta.url)));

/** The path of a file under ../shared, or null where there is none. */
export function sharedPath(name: string): string | null {
  for (const folder of folders) if (existsSync(folder + name)) return folder + name;
  return null;
}
