// The user's configuration, `<user state folder>/config.json`: read here on every start, written by `magic config set`.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fields } from "#contract/json-object.ts";
import { userStateFolder } from "./paths.ts";

export function userConfigPath(env: NodeJS.ProcessEnv): string {
  return join(userStateFolder(env), "config.json");
}

/** Its values by name; none where there is no file, or where it is damaged. */
export function readUserConfig(env: NodeJS.ProcessEnv): Readonly<Record<string, unknown>> {
  try {
    return fields(JSON.parse(readFileSync(userConfigPath(env), "utf8")));
  } catch {
    return {};
  }
}
