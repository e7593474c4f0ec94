// The daemon's program. What it does with its life is in process/run.ts.
import { setFlagsFromString } from "node:v8";
import { runDaemon } from "./process/run.ts";

// Under load, the first seconds of a daemon go to V8's optimising compiler: most of all for a few very large functions that gain little by
// it, which stay with the compiler before it. undici's constructor of a request, which every call passes, has 2,126 bytes.
setFlagsFromString("--max-optimized-bytecode-size=2200");
// A call passes so much code that there is no room for it near the processor: what is copied into each of its callers takes more of it.
setFlagsFromString("--max-inlined-bytecode-size=250");
// The limit that the command line sets (src/client/daemon/spawn.ts) is for what this thread holds; the others, which hold little, go by V8's own.
setFlagsFromString("--initial-old-space-size=0");
// Buffers outside of the heap count as it does. By default 64 MB of them make V8 go through the whole heap, which bodies of 64 kB do all the time: most
// are garbage that the next look at young memory finds.
setFlagsFromString("--external-memory-accounted-in-global-limit");

const code = await runDaemon(process.argv.slice(2));
// A daemon that came up lives on by its listener; one that did not must not hang on what it had opened.
if (code !== 0) process.exit(code);
