// magic open: the daemon's documentation page in a browser; without a terminal only its address.
import { connect } from "#client/daemon/connect.ts";
import { defineCommand } from "#commands/command.ts";
import { openInBrowser } from "#output/open.ts";

export default defineCommand({
  async run({ output, globals, env }) {
    const client = await connect({ root: globals.root, url: globals.url, live: globals.live, env, note: output.note });
    const url = `${client.url}/docs`;
    if (output.interactive) await openInBrowser(url);
    output.result({ url, opened: output.interactive }, () => url);
  },
});
