// The process of a SQLite file for db:query; see daemon/controllers/broker/db.
import { serveSqlite } from "#daemon/controllers/broker/db/sqlite-process.ts";

const [file = "", mode = "read"] = process.argv.slice(2);
await serveSqlite(file, mode);
