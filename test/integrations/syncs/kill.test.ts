import { killMatrix } from "./kill-matrix.ts";

killMatrix({ destinations: ["postgres", "sqlite"], kills: 2, rows: 500, seed: 7 });
