// The verbs of `magic client`.
import { credentialVerbs } from "#commands/credential-entries.ts";

export const verbs = credentialVerbs("client", "a client");
