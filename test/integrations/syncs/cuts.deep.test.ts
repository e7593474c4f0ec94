import { cuts } from "./cuts.ts";

cuts(
  [
    ["mysql", "postgres"],
    ["postgres", "mysql"],
    ["mysql", "mysql"],
    ["postgres", "postgres"],
    ["postgres", "sqlite"],
    ["mysql", "csv"],
    ["postgres", "parquet"],
  ],
  [3000, 200_001, 1_500_003],
);
