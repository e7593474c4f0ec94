// The verbs of `magic token`.
import { credentialVerbs } from "#commands/credential-entries.ts";

export const verbs = credentialVerbs("token", "a gateway token");
