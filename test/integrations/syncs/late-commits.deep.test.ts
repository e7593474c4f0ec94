import { lateCommits } from "./late-commits.ts";

const seconds = Number(process.env["MAGIC_TEST_SECONDS"] ?? 1800);
lateCommits({ seconds, writers: 8, seed: Number(process.env["MAGIC_TEST_SEED"] ?? 20_261_121) });
