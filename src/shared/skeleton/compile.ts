// Makes skim.wasm.ts of skim.as.ts. The compiler is fetched for it: nobody else needs its hundred megabytes.
//   npm run skim
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = import.meta.dirname;
const source = join(folder, "skim.as.ts");

export function digestOfSource(): string {
  return createHash("sha256").update(readFileSync(source)).digest("hex");
}

function compile(): void {
  const temporary = mkdtempSync(join(tmpdir(), "magic-skim-"));
  try {
    const compiled = join(temporary, "skim.wasm");
    const options = [
      "--runtime",
      "stub",
      "--noAssert",
      "-O3",
      "--converge",
      "--enable",
      "simd",
      "--initialMemory",
      "1",
    ];
    const asc = ["--yes", "--package=assemblyscript@0.28.20", "asc"];
    execFileSync("npx", [...asc, source, "--outFile", compiled, ...options], { stdio: "inherit" });
    writeFileSync(
      join(folder, "skim.wasm.ts"),
      `// Made of skim.as.ts by \`npm run skim\`.\n\nexport const source =\n  "${digestOfSource()}";\n\nexport const wasm =\n  "${readFileSync(compiled, "base64")}";\n`,
    );
  } finally {
    rmSync(temporary, { recursive: true });
  }
}

if (import.meta.main) compile();
