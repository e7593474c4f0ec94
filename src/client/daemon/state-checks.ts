// What doctor says of the files that a daemon needs to start: without one to ask, it reads them itself, and changes nothing.
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { errors } from "#contract/errors.ts";
import { MIGRATION_TABLE, migrationNames } from "#contract/migrations.ts";
import { runtimeNames } from "#contract/protocol.ts";
import { credentialsOf } from "#shared/local-credentials.ts";
import { FINGERPRINT_SETTING, keyFingerprint, masterKeyOf } from "#shared/master-key.ts";
import { credentialsFile, databaseFile, masterKeyFile, stateFolder, userStateFolder } from "#shared/paths.ts";
import { databaseProblem, rowsIn } from "#shared/sqlite-soundness.ts";
import type { Check, DoctorOptions } from "./check.ts";
import type { Inspection } from "./inspect.ts";

/** The database, then the small files beside it. An owner that lives holds them: then they are its own affair. */
export function stateChecks({ state, info }: Inspection, options: DoctorOptions): Check[] {
  if (state !== "absent" && state !== "stale")
    return [
      { name: "database", status: "ok", detail: "held by the daemon, which checked it when it started" },
      ...(info?.problems ?? []).map(
        ({ code, detail, next }): Check => ({ name: code, status: "failed", detail, next }),
      ),
    ];
  const found = [databaseCheck(options), filesCheck(options)];
  // What is damaged has been told.
  return found.every(({ status }) => status === "ok") ? [...found, masterKeyCheck(options)] : found;
}

function databaseCheck({ root }: DoctorOptions): Check {
  const name = "database";
  const path = databaseFile(stateFolder(root));
  const found =
    problemOf(path, "Restore it from a copy; the file was left as it is.", databaseProblem) ??
    problemOf(path, "Upgrade magic.", newerVersion);
  if (found !== undefined) return { name, status: "failed", detail: found.detail, next: found.next };
  return { name, status: "ok", detail: "sound, or not made yet" };
}

function newerVersion(path: string): string | undefined {
  const taken = rowsIn(path, [MIGRATION_TABLE], `SELECT name FROM "${MIGRATION_TABLE}"`);
  const unknown = taken.some(({ name }) => !(migrationNames as readonly string[]).includes(String(name)));
  return unknown ? `a newer version of magic made ${path}` : undefined;
}

function filesCheck({ root, env, fix }: DoctorOptions): Check {
  const name = "state files";
  const lock = join(stateFolder(root), runtimeNames.lock);
  const lockFound = problemOf(lock, "Move it out of the way; it was left as it is.", (path) =>
    // As it is in the moment in which it is made.
    statSync(path).size === 0 ? undefined : databaseProblem(path),
  );
  // It holds nothing, and a daemon that lives would not have a damaged one. What cannot be judged is left.
  if (lockFound?.damaged && fix) {
    rmSync(lock);
    return { name, status: "fixed", detail: `${lockFound.detail}: removed` };
  }
  const remove = "Restore it from a copy, or remove it: new credentials are made.";
  const found = [
    lockFound?.damaged
      ? { ...lockFound, next: "`magic doctor --fix` removes the lock file; it holds nothing." }
      : lockFound,
    problemOf(credentialsFile(stateFolder(root)), remove, credentialsProblem),
    problemOf(masterKeyFile(userStateFolder(env)), "Restore it from a copy.", keyProblem),
  ].filter((problem) => problem !== undefined);
  if (found.length === 0) return { name, status: "ok", detail: "sound, or not made yet" };
  const told = (part: "detail" | "next") => found.map((problem) => problem[part]);
  return { name, status: "failed", detail: told("detail").join("; "), next: [...new Set(told("next"))].join(" ") };
}

interface Problem {
  readonly detail: string;
  readonly next: string;
  /** A file that was read, and is not sound; else it could not be judged. */
  readonly damaged: boolean;
}

/** What `look` finds wrong with the file, which `next` helps against; what keeps it from being read is a problem, too. */
function problemOf(path: string, next: string, look: (path: string) => string | undefined): Problem | undefined {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === false)
      return { detail: `${path} is no file`, next: "Move it out of the way; it was left as it is.", damaged: false };
    const detail = look(path);
    return detail === undefined ? undefined : { detail, next, damaged: true };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    const refused = code === "EACCES" || code === "EPERM";
    return {
      detail: `${path} cannot be read: ${message}`,
      next: refused ? "Correct its owner and permissions; it was left as it is." : next,
      damaged: false,
    };
  }
}

function credentialsProblem(path: string): string | undefined {
  return credentialsOf(readFileSync(path, "utf8")) ? undefined : `${path} is damaged`;
}

function keyProblem(path: string): string | undefined {
  return readKey(path) ? undefined : `the master key ${path} is damaged`;
}

function readKey(path: string): Buffer | undefined {
  return masterKeyOf(readFileSync(path, "utf8"));
}

/** Whether the key in place is the one that sealed what the database keeps: what a daemon would find out at its start. */
function masterKeyCheck({ root, env }: DoctorOptions): Check {
  const name = "master key";
  const file = masterKeyFile(userStateFolder(env));
  try {
    const sealed =
      "SELECT 1 FROM connection WHERE secret IS NOT NULL UNION ALL SELECT 1 FROM webhook WHERE secrets <> ''";
    const query = `SELECT value FROM setting WHERE key = ? AND EXISTS (${sealed})`;
    const database = databaseFile(stateFolder(root));
    const kept = rowsIn(database, ["setting", "connection", "webhook"], query, FINGERPRINT_SETTING)[0]?.["value"];
    const there = existsSync(file);
    const key = there ? readKey(file) : undefined;
    const own = key && keyFingerprint(key);
    if (kept === undefined || kept === own)
      return { name, status: "ok", detail: "nothing was sealed with another one" };
    const found = own === undefined ? (there ? "is damaged" : "is missing") : `holds ${own}`;
    const detail = `what is sealed in ${database} was sealed with the master key ${kept}; ${file} ${found}`;
    return { name, status: "failed", detail, next: errors.master_key_mismatch.next };
  } catch (error) {
    return { name, status: "failed", detail: (error as Error).message };
  }
}
