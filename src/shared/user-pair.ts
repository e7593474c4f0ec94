// The certificate and its key that the user names, for TLS.
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { MagicError } from "#contract/errors.ts";

/** @throws MagicError `config_invalid` when a file is missing, they do not belong together, or only one is named. */
export async function userPair(
  certFile: string | undefined,
  keyFile: string | undefined,
): Promise<{ cert: string; key: string }> {
  if (certFile === undefined || keyFile === undefined)
    throw new MagicError("config_invalid", "A certificate and its key go together: name both files, or neither.");
  const [cert, key] = await Promise.all([readPem(certFile, "certificate"), readPem(keyFile, "key")]);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    const detail = `${certFile} and ${keyFile} cannot be used: ${(error as Error).message}.`;
    throw new MagicError("config_invalid", detail, { cause: error });
  }
  return { cert, key };
}

async function readPem(path: string, what: string): Promise<string> {
  return readFile(path, "utf8").catch((error: Error) => {
    throw new MagicError("config_invalid", `The ${what} ${path} cannot be read: ${error.message}.`, { cause: error });
  });
}
