import { restarts } from "./restarts.ts";

restarts(
  [
    ["postgres", "postgres", "source"],
    ["postgres", "postgres", "destination"],
    ["postgres", "sqlite", "source"],
    ["postgres", "parquet", "source"],
    ["mysql", "postgres", "source"],
    ["postgres", "mysql", "destination"],
  ],
  40_000,
);
