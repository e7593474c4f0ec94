// Copies with `magic sync run` against psql on the same data in the same run, and prints ratios. Needs a PostgreSQL on the machine and
// a built dist/. `node bench/sync/run.ts [--rows 2000000] [--rounds 3] [--only narrow,csv,parquet,small]`
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { startPostgres } from "../../test/postgres.ts";
import { median } from "../measure.ts";

const { values: options } = parseArgs({
  options: {
    rows: { type: "string", default: "2000000" },
    rounds: { type: "string", default: "3" },
    only: { type: "string", default: "narrow,csv,parquet,small" },
  },
});
const rows = Number(options.rows);
const rounds = Number(options.rounds);
const wanted = new Set(options.only.split(","));
const folder = mkdtempSync(join(tmpdir(), "magic-bench-"));
const env = { ...process.env, MAGIC_HOME: join(folder, "home"), CI: "1" };
const server = await startPostgres(["synchronous_commit=off", "autovacuum=off"]);

try {
  const [from, to] = [await server.createDatabase("src"), await server.createDatabase("dst")];
  const seed = "hashint8extended(i, ";
  await sql(
    from,
    `CREATE TABLE narrow AS SELECT i AS id, (${seed}1) % 1000000000)::int AS a, ${seed}2) / 1e6::float8 AS b, timestamptz '2020-01-01 00:00:00+00' + abs(${seed}3) % 150000000000000) * interval '1 microsecond' AS c, 'name-' || to_hex(${seed}4) & 4294967295) AS d FROM generate_series(1::bigint, ${rows}) i; CREATE TABLE small AS SELECT * FROM narrow LIMIT 100; VACUUM (FREEZE, ANALYZE) narrow`,
  );
  const csv = join(folder, "narrow.csv");
  await shell(`psql -X -q '${from}' -c "COPY narrow TO STDOUT (FORMAT csv, HEADER)" > '${csv}'`);
  const magic = (source: string, object: string, target: string) =>
    `'${process.execPath}' bin/magic.js sync run --from '${source}' --object ${object} --to '${target}' --table ${object} --json`;
  const fresh = (table: string) =>
    sql(
      to,
      `DROP TABLE IF EXISTS ${table}; CREATE TABLE ${table} (id bigint, a int, b double precision, c timestamptz, d text)`,
    );
  const gone = (table: string) => sql(to, `DROP TABLE IF EXISTS ${table}`);
  console.log(`${rows} rows, ${rounds} rounds, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}`);
  if (wanted.has("narrow"))
    await compare(
      "PostgreSQL -> PostgreSQL",
      "psql COPY binary | psql COPY binary",
      () => fresh("narrow"),
      `psql -X -q '${from}' -c 'COPY narrow TO STDOUT (FORMAT binary)' | psql -X -q '${to}' -c 'COPY narrow FROM STDIN (FORMAT binary)'`,
      () => gone("narrow"),
      magic(from, "narrow", to),
    );
  if (wanted.has("csv"))
    await compare(
      "CSV -> PostgreSQL",
      "psql \\copy",
      () => fresh("narrow"),
      `psql -X -q '${to}' -c "\\copy narrow FROM '${csv}' CSV HEADER"`,
      () => fresh("narrow"),
      magic(csv, "narrow", to),
    );
  if (wanted.has("parquet"))
    await compare(
      "PostgreSQL -> Parquet",
      "psql COPY csv > file",
      async () => {},
      `psql -X -q '${from}' -c 'COPY narrow TO STDOUT (FORMAT csv)' > '${folder}/baseline.csv'`,
      async () => {},
      magic(from, "narrow", join(folder, "narrow.parquet")),
    );
  if (wanted.has("small"))
    await compare(
      "100 rows, command to exit",
      "psql COPY | psql COPY",
      () => fresh("small"),
      `psql -X -q '${from}' -c 'COPY small TO STDOUT' | psql -X -q '${to}' -c 'COPY small FROM STDIN'`,
      () => gone("small"),
      magic(from, "small", to),
    );
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function compare(
  name: string,
  baseline: string,
  before: () => Promise<unknown>,
  theirs: string,
  clear: () => Promise<unknown>,
  ours: string,
): Promise<void> {
  const times: { base: number; ours: number; rss: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    await before();
    const base = await shell(theirs);
    await clear();
    const run = await shell(ours);
    times.push({ base: base.seconds, ours: run.seconds, rss: run.peakMb });
  }
  const middle = (of: (one: (typeof times)[number]) => number) => median(times.map(of));
  const ratio = middle(({ base, ours: own }) => base / own);
  console.log(
    `${name}: ${middle(({ ours: own }) => own).toFixed(2)} s, ${ratio.toFixed(2)} x ${baseline} (${middle(({ base }) => base).toFixed(2)} s), peak RSS of all processes ${middle(({ rss }) => rss).toFixed(0)} MB`,
  );
}

/** Seconds of a command, and the greatest sum of its processes' resident memory, sampled. */
function shell(command: string): Promise<{ seconds: number; peakMb: number }> {
  return new Promise((resolve, reject) => {
    const started = performance.now();
    const child = spawn("bash", ["-o", "pipefail", "-c", command], { env, stdio: ["ignore", "ignore", "inherit"] });
    let peak = 0;
    const timer = setInterval(() => {
      peak = Math.max(peak, memoryOf(child.pid ?? 0));
    }, 30);
    child.on("error", reject);
    child.on("exit", (code) => {
      clearInterval(timer);
      if (code === 0) resolve({ seconds: (performance.now() - started) / 1000, peakMb: peak });
      else reject(new Error(`exit ${code}: ${command}`));
    });
  });
}

function memoryOf(root: number): number {
  const parents = new Map<number, number>();
  const memory = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const status = readFileSync(`/proc/${name}/status`, "utf8");
      parents.set(Number(name), Number(/PPid:\s+(\d+)/.exec(status)?.[1]));
      memory.set(Number(name), Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
    } catch {
      // It has ended meanwhile.
    }
  }
  let sum = 0;
  for (const [pid, own] of memory)
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = parents.get(at))
      if (at === root) {
        sum += own;
        break;
      }
  return sum;
}

async function sql(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const statement of text.split("; ")) await client.query(statement);
  await client.end();
}

// psql is what everything is compared with.
execFileSync("psql", ["--version"]);
