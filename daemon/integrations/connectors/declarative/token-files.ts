// Rotated tokens of commands that run without a daemon: sealed in the user's state folder, one small database for each grant, so that the
// same configuration goes on working although the refresh token in it is used up. Its lock ends with whoever holds it.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { MagicError } from "#contract/errors.ts";
import type { KeptToken, TokenKeeper } from "#contract/tokens.ts";
import { openMasterKey } from "#daemon/secrets/master-key.ts";
import { createSealer } from "#daemon/secrets/sealer.ts";
import { makeFolder } from "#shared/make-folder.ts";
import { keyFingerprint } from "#shared/master-key.ts";
import { masterKeyFile } from "#shared/paths.ts";

const SQLITE_BUSY = 5;

/** `home`: the user's state folder. */
export function tokenFiles(home: string): TokenKeeper {
  const folder = join(home, "connector-tokens");
  return {
    async hold(grant) {
      makeFolder(folder, 0o700);
      const masterKey = openMasterKey(home);
      refuseOther(folder, masterKey, masterKeyFile(home));
      const sealer = createSealer(masterKey, "connector-tokens");
      const name = sealer.digest(grant);
      const place = { tenant: "local", row: name, field: "token" };
      const db = await lock(join(folder, name));
      const sealed = db.prepare("select sealed from token").get()?.["sealed"];
      return {
        kept: typeof sealed === "string" ? (JSON.parse(sealer.open(sealed, place)) as KeptToken) : null,
        async save(token) {
          db.prepare("insert or replace into token values (1, ?)").run(sealer.seal(JSON.stringify(token), place));
          if (db.isTransaction) db.exec("commit");
        },
        release: () => db.close(),
      };
    },
  };
}

// Under another key no token would be found, and the used-up one of the configuration would be sent instead.
function refuseOther(folder: string, masterKey: Buffer, keyFile: string): void {
  const file = join(folder, "master-key-fingerprint");
  const own = keyFingerprint(masterKey);
  try {
    writeFileSync(file, own, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    const kept = readFileSync(file, "utf8");
    // Empty: another process is writing it just now.
    if (kept === own || kept === "") return;
    const detail = `The rotated tokens in ${folder} were sealed with the master key ${kept}; ${keyFile} holds ${own}. Put that key back, or remove the folder and authorize anew.`;
    throw new MagicError("master_key_mismatch", detail);
  }
}

async function lock(file: string): Promise<DatabaseSync> {
  const db = new DatabaseSync(file, { timeout: 0 });
  for (;;) {
    try {
      db.exec("begin exclusive");
      db.exec("create table if not exists token (id integer primary key, sealed text) strict");
      return db;
    } catch (error) {
      if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
