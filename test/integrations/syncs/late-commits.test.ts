import { lateCommits } from "./late-commits.ts";

lateCommits({ seconds: 3, writers: 4, seed: 11 });
