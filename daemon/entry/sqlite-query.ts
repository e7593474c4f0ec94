// The thread of a SQLite file for db:query; see daemon/controllers/broker/db.
import { serveSqlite } from "#daemon/controllers/broker/db/sqlite-thread.ts";

serveSqlite();
