// A daemon in a process of its own, to be killed by a test. Prints where it listens and its gateway token, then serves.
import { flushCompileCache } from "node:module";
import { createApp } from "#daemon/app.ts";

const app = await createApp({ root: process.argv[2] ?? "", watch: false });
const url = await app.listen();
process.stdout.write(`${JSON.stringify({ url, token: app.credentials.gateway_token })}\n`);
// Killed, it would never keep what it compiled, and the next one would begin from the sources again.
flushCompileCache();
