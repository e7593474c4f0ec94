// Where this installation of magic lies: its templates, and the types and code of magic/sdk that projects are pointed at.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** The folder that holds bin/, dist/ and templates/; found from source and from bundled chunks alike. */
export const installation = findInstallation(import.meta.dirname);

function findInstallation(from: string): string {
  for (let folder = from; dirname(folder) !== folder; folder = dirname(folder))
    if (existsSync(join(folder, "bin", "magic.js")) && existsSync(join(folder, "templates"))) return folder;
  throw new Error(`the installation of magic around ${from} has no templates`);
}

/** What the imports of a controller resolve to without an install of its own. */
export const sdkEntries = {
  "magic/sdk": { code: join(installation, "dist", "sdk.js"), types: join(installation, "dist/types/sdk/index.d.ts") },
  "magic/sdk/testing": {
    code: join(installation, "dist", "sdk-testing.js"),
    types: join(installation, "dist/types/sdk/testing.d.ts"),
  },
} as const;
