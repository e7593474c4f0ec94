// The daemon's program. What it does with its life is in process/run.ts.
import { runDaemon } from "./process/run.ts";

const code = await runDaemon(process.argv.slice(2));
// A daemon that came up lives on by its listener; one that did not must not hang on what it had opened.
if (code !== 0) process.exit(code);
