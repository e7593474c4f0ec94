// magic open: the daemon's documentation page in a browser; without a terminal only its address.
import { defineCommand } from "#commands/command.ts";
import { clientOf } from "#commands/connection-of.ts";
import { openInBrowser } from "#output/open.ts";

export default defineCommand({
  async run(context) {
    const { output } = context;
    const client = await clientOf(context);
    const url = `${client.url}/docs`;
    if (output.interactive) await openInBrowser(url);
    output.result({ url, opened: output.interactive }, () => url);
  },
});
