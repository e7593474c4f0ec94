// The cell's first program; see daemon/controllers/cell/lockdown.
import { runStageZero } from "#daemon/controllers/cell/lockdown/stage-zero.ts";

runStageZero();
