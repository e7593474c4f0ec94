// A process with a daemon in it, to be killed: prints its URL and local token, then serves. `node daemon-process.ts ROOT HOME`
import { createApp } from "#daemon/app.ts";

const [root = "", home = ""] = process.argv.slice(2);
const app = await createApp({ root, env: { MAGIC_HOME: home }, logLevel: "error" });
const url = await app.listen();
process.send?.({ url, token: app.credentials.local_token });
