// End-to-end tests start bin/magic.js, which loads dist/: build it from the sources under test.
import { execFileSync } from "node:child_process";

export default function setup(): void {
  execFileSync(process.execPath, ["build.js"], { stdio: "inherit", cwd: new URL("..", import.meta.url) });
}
