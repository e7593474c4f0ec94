// A daemon in a process of its own that says how large its heap is after a collection. Needs --expose-gc and an IPC channel.
import { createApp } from "#daemon/app.ts";

const app = await createApp({ root: process.argv[2] ?? "", watch: false });
const url = await app.listen();
process.on("message", (message) => {
  if (message === "stop") return void app.close().then(() => process.exit(0));
  globalThis.gc?.();
  globalThis.gc?.();
  process.send?.({ heap: process.memoryUsage().heapUsed });
});
process.send?.({ url, token: app.credentials.gateway_token, local: app.credentials.local_token });
