// magic open: the daemon's documentation page in a browser; without a terminal only its address.
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
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
