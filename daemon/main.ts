// The daemon's program. What it does with its life is in process/run.ts.
import { setFlagsFromString } from "node:v8";
import { runDaemon } from "./process/run.ts";

// Under load, the first ten seconds of a daemon go to V8's optimising compiler, most of all for a few very large functions that gain
// little by it: a tenth of a gateway call's CPU. They stay with the compiler before it.
setFlagsFromString("--max-optimized-bytecode-size=2000");

const code = await runDaemon(process.argv.slice(2));
// A daemon that came up lives on by its listener; one that did not must not hang on what it had opened.
if (code !== 0) process.exit(code);
