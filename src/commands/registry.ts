// Every top-level command: what --help shows, and where its code is. Nothing here loads a command.
// A new verb goes into its noun's `verbs.ts`; a new noun or plain command gets a line here.
import type { Group } from "./command.ts";

export const groups: readonly Group[] = [
  {
    heading: "Build controllers:",
    commands: {
      scaffold: { summary: "Make a new controller from a template", load: () => import("#commands/scaffold.ts") },
      validate: { summary: "Check contracts and magic.yaml", load: () => import("#commands/validate.ts") },
      dev: {
        summary: "Serve controllers and reload them on every save",
        load: () => import("#commands/dev/command.ts"),
      },
      test: { summary: "Run controllers' tests", load: () => import("#commands/test.ts") },
      build: { summary: "Build a controller into one file", load: () => import("#commands/build.ts") },
      deploy: { summary: "Deploy a version of a controller", load: () => import("#commands/deploy.ts") },
      invoke: { summary: "Run a controller once", load: () => import("#commands/invoke.ts") },
      controller: {
        summary: "Deployed controllers: versions, rollback, delete",
        verbs: () => import("#commands/controller/verbs.ts"),
      },
    },
  },
  {
    heading: "Run and observe:",
    commands: {
      daemon: {
        summary: "Start, stop and look at the local daemon",
        local: true,
        verbs: () => import("#commands/daemon/verbs.ts"),
      },
      logs: { summary: "Show or follow what happens", load: () => import("#commands/logs.ts") },
      open: { summary: "Open the API's documentation in a browser", load: () => import("#commands/open.ts") },
      doctor: {
        summary: "Find out what is wrong, and mend it",
        local: true,
        load: () => import("#commands/doctor.ts"),
      },
    },
  },
  {
    heading: "AI gateway:",
    commands: {
      chat: { summary: "Ask a model; the answer is streamed, its cost shown", load: () => import("#commands/chat.ts") },
      model: { summary: "List models and their prices", verbs: () => import("#commands/model/verbs.ts") },
      route: { summary: "Explain where a request would go", verbs: () => import("#commands/route/verbs.ts") },
      usage: {
        summary: "Tokens and cost by user, team, project, model or day",
        load: () => import("#commands/usage.ts"),
      },
      trace: { summary: "What happened to one request, as a waterfall", load: () => import("#commands/trace.ts") },
    },
  },
  {
    heading: "Integrations:",
    commands: {
      connector: {
        summary: "List, add, test and read connectors",
        verbs: () => import("#commands/connector/verbs.ts"),
      },
      connection: { summary: "Connect systems to each other", verbs: () => import("#commands/connection/verbs.ts") },
      sync: { summary: "Move data between connections", verbs: () => import("#commands/sync/verbs.ts") },
      webhook: { summary: "Send events to your addresses", verbs: () => import("#commands/webhook/verbs.ts") },
    },
  },
  {
    heading: "Access:",
    commands: {
      key: { summary: "API keys: create, roll, revoke", verbs: () => import("#commands/key/verbs.ts") },
      client: { summary: "OAuth clients: create, roll, revoke", verbs: () => import("#commands/client/verbs.ts") },
      token: { summary: "Gateway tokens: create, roll, revoke", verbs: () => import("#commands/token/verbs.ts") },
      audit: { summary: "Read and verify the audit log", verbs: () => import("#commands/audit/verbs.ts") },
    },
  },
  {
    heading: "This command line:",
    commands: {
      config: { summary: "Show and change settings", verbs: () => import("#commands/config/verbs.ts") },
      demo: { summary: "See all of it at work, in half a minute", load: () => import("#commands/demo/command.ts") },
      completion: { summary: "Completion for bash, zsh or fish", load: () => import("#commands/completion.ts") },
    },
  },
];
