// A disk that fills up at every possible moment of scaffolding: afterwards everything is there, or the folder is as it was.
import { execFileSync, spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { createSandbox, program } from "./magic.ts";

/** Runs in a mount namespace of its own: a small disk, a project on it, one attempt at each size. */
const script = `
mount -t tmpfs -o size=64k none "$DISK" || exit 99
cd "$DISK"
for size in $(seq 8 4 96); do
  mount -o remount,size=64k "$DISK"
  find . -mindepth 1 -delete
  if [ -n "$YAML" ]; then printf "$YAML" > magic.yaml; fi
  mount -o remount,size=\${size}k "$DISK" 2>/dev/null || continue
  before=$(find . -type f -not -path './.magic/*' -exec sha1sum {} + | sort)
  "$NODE" "$PROGRAM" scaffold --name a --template "$TEMPLATE" --json > /dev/null 2> "$ERRORS"; code=$?
  if [ $code = 0 ]; then echo "made"; exit 0; fi
  [ "$before" = "$(find . -type f -not -path './.magic/*' -exec sha1sum {} + | sort)" ] || { echo "$size: left behind:"; find .; }
  tail -n 1 "$ERRORS" | grep -q '"code":"storage_full"' || { echo "$size: exit $code"; cat "$ERRORS"; }
done
`;
const mountable = spawnSync("unshare", ["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).status === 0;

test.skipIf(!mountable).each([
  ["minimal", ""],
  ["minimal", "version: 1\\n"],
  ["db", ""],
  ["db", "# mine\\nversion: 1\\n"],
])("scaffold --template %s with magic.yaml %j", async (TEMPLATE, YAML) => {
  const box = createSandbox();
  try {
    const said = execFileSync("unshare", ["-m", "sh", "-c", script], {
      encoding: "utf8",
      env: {
        ...box.env,
        DISK: box.folder,
        NODE: process.execPath,
        PROGRAM: program,
        ERRORS: `${box.folder}.errors`,
        TEMPLATE,
        YAML,
      },
    });
    expect(said).toBe("made\n");
  } finally {
    await box.dispose();
  }
});
