// The storage thread's entry: started by daemon/storage/sqlite/thread.ts from source, from Vitest and from dist alike.
import "#daemon/storage/sqlite/worker.ts";
