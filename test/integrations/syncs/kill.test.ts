import { killMatrix } from "./kill-matrix.ts";

killMatrix({ destinations: ["postgres", "sqlite"], kills: 2, rows: 2000, seed: 7 });
