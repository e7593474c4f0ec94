// argv -> one dynamic import.
import { VERSION } from "#contract/protocol.ts";

process.stdout.write(`${VERSION}\n`);
