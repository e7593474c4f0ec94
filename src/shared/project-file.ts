// A root's magic.yaml, for the commands that go by what it says.
import { join } from "node:path";
import { configInvalid } from "#contract/problem.ts";
import type { ProjectConfig } from "#contract/project.ts";
import { type ProjectReading, readProject } from "#contract/project-check.ts";
import { hasProjectFile, PROJECT_FILE } from "./paths.ts";
import { readPlainFile } from "./plain-file.ts";

/** What it says, or every problem of it. Where it is absent or blank it is every default, as to the daemon. Throws not_found where it is no file. */
export function readProjectFile(root: string): ProjectReading {
  const written = hasProjectFile(root) ? readPlainFile(join(root, PROJECT_FILE)) : "";
  return readProject(written, PROJECT_FILE);
}

/** The same, where nothing goes by a file that is not valid. Throws config_invalid with every problem. */
export function projectOf(root: string): ProjectConfig {
  const { config, problems } = readProjectFile(root);
  if (!config) throw configInvalid(problems);
  return config;
}
