// Stack traces of a cell, as the user wrote the code: bundle positions through the source map, the cell's own frames left out.
import { SourceMap, type SourceMapPayload } from "node:module";
import { posix } from "node:path";
import { percentDecoded } from "#shared/percent-encoding.ts";

export interface StackMapper {
  /** The stack with the user's files and lines. */
  map(stack: string): string;
}

/** Characters; that of a bundle of some 6 MB. What is made of it takes 25 times as much memory, and a second for what the longest could have. */
const MAX_MAPPINGS = 4 * 1024 * 1024;

const FRAME = /^(\s+at )(?:(.*?) \()?(?:(?<file>[^()\s]+\.magic\.js):(?<line>\d+):(?<column>\d+))\)?$/;

/** The file name under which a cell evaluates the bundle. */
export function bundleName(controller: string): string {
  return `${controller}.magic.js`;
}

export function stackMapper(map: string, folder: string): StackMapper {
  let parsed: SourceMap | null | undefined;
  const sourceMap = (): SourceMap | null => {
    if (parsed === undefined) {
      try {
        const payload = JSON.parse(map) as SourceMapPayload & { sections?: unknown };
        // Maps within the map: no bundle's has them.
        parsed = payload.sections || payload.mappings.length > MAX_MAPPINGS ? null : new SourceMap(payload);
      } catch {
        parsed = null;
      }
    }
    return parsed;
  };

  function mapFrame(line: string): string | null {
    const match = FRAME.exec(line);
    if (!match?.groups) return /\(?(file:\/\/|node:internal)/.test(line) ? null : line;
    const entry = sourceMap()?.findEntry(Number(match.groups["line"]) - 1, Number(match.groups["column"]) - 1);
    // Whoever deployed the map may have written anything into it.
    if (!entry || !("originalSource" in entry) || typeof entry.originalSource !== "string") return line;
    // esbuild writes a source's name as the path of a URL.
    const place = `${posix.join(folder, percentDecoded(entry.originalSource))}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
    return match[2] ? `${match[1]}${match[2]} (${place})` : `${match[1]}${place}`;
  }

  return {
    map: (stack) =>
      stack
        .split("\n")
        .map((line) => (/^\s+at /.test(line) ? mapFrame(line) : line))
        .filter((line) => line !== null)
        .join("\n"),
  };
}
