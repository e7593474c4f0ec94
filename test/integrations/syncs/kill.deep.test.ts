// 17 kills for each of 12 pairs of mode and destination: 204 in all.
import { killMatrix } from "./kill-matrix.ts";

const seed = Number(process.env["MAGIC_TEST_SEED"] ?? 20_261_121);
killMatrix({ destinations: ["postgres", "sqlite", "csv", "jsonl", "parquet", "mysql"], kills: 17, rows: 20_000, seed });
