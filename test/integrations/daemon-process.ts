// A process with a daemon in it, to be killed: prints its URL and local token, then serves. `node daemon-process.ts ROOT HOME`
import { flushCompileCache } from "node:module";
import { createApp } from "#daemon/app.ts";

const [root = "", home = ""] = process.argv.slice(2);
const app = await createApp({ root, env: { MAGIC_HOME: home }, logLevel: "error" });
const url = await app.listen();
process.send?.({ url, token: app.credentials.local_token });
// Killed, it would never keep what it compiled, and the next one would begin from the sources again.
flushCompileCache();
