// Opens a page in the user's browser.
import { spawn } from "node:child_process";
import { MagicError } from "#contract/errors.ts";

const programs: Readonly<Partial<Record<NodeJS.Platform, string>>> = { darwin: "open", win32: "explorer" };

/** Resolves once the browser was asked. Throws where there is no program to ask. */
export function openInBrowser(url: string): Promise<void> {
  const program = programs[process.platform] ?? "xdg-open";
  return new Promise((resolve, reject) => {
    // A daemon elsewhere may have named it: files and programs of this machine are none of its business.
    if (!/^https?:\/\//i.test(url)) throw new MagicError("usage", `${url} is no page that a browser could open.`);
    const child = spawn(program, [url], { stdio: "ignore", detached: true });
    child.once("error", (error) =>
      reject(new MagicError("not_found", `${program} could not be started; open ${url} yourself.`, { cause: error })),
    );
    child.once("spawn", () => {
      child.unref();
      resolve();
    });
  });
}
