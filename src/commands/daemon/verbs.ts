// The verbs of `magic daemon`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

export const verbs: Verbs = {
  start: { summary: "Start the daemon, or show the one that runs", load: () => import("./start.ts") },
  stop: { summary: "Let answers under way end, then stop it", load: () => import("./stop.ts") },
  status: { summary: "Show whether it runs, and where", load: () => import("./status.ts") },
  restart: { summary: "Stop it and start it again", load: () => import("./restart.ts") },
  logs: { summary: "Show the daemon's own log, also when it is down", load: () => import("./logs.ts") },
};
