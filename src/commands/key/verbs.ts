// The verbs of `magic key`.
import { credentialVerbs } from "#commands/credential-entries.ts";

export const verbs = credentialVerbs("key", "an API key");
