// The cell's second program; see daemon/controllers/cell/guest.
import { runZygote } from "#daemon/controllers/cell/guest/zygote.ts";

await runZygote();
