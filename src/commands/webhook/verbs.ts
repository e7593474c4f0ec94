// The verbs of `magic webhook`: what its --help shows, and where their code is.
import type { Verbs } from "#commands/command.ts";

const shared = () => import("#commands/resource-verbs.ts");
const path = (id: string) => `/v1/webhooks/${id}`;

export const verbs: Verbs = {
  create: { summary: "Subscribe an address to events", load: () => import("./create.ts") },
  list: {
    summary: "List webhooks",
    load: async () => {
      const columns = [
        { title: "ID", value: ({ id }: Row) => id },
        { title: "URL", value: ({ url }: Row) => url },
        { title: "EVENTS", value: ({ events }: Row) => events.join(", ") },
        { title: "STATUS", value: ({ status }: Row) => status },
      ];
      return { default: (await shared()).listVerb({ nouns: "webhooks", path: () => "/v1/webhooks", columns }) };
    },
  },
  get: {
    summary: "Show one webhook",
    load: async () => ({ default: (await shared()).getVerb("webhook", path, (await import("./show.ts")).showWebhook) }),
  },
  update: { summary: "Change, enable or disable a webhook", load: () => import("./update.ts") },
  test: { summary: "Send a test event", load: async () => ({ default: (await import("./actions.ts")).test }) },
  deliveries: {
    summary: "List what was sent, and how it went",
    load: async () => {
      const columns = [
        { title: "ID", value: ({ id }: DeliveryRow) => id },
        { title: "EVENT", value: ({ event_type }: DeliveryRow) => event_type },
        { title: "STATUS", value: ({ status }: DeliveryRow) => status },
        { title: "ATTEMPTS", value: ({ attempts }: DeliveryRow) => attempts.length, align: "right" as const },
        { title: "CODE", value: ({ response_code }: DeliveryRow) => response_code, align: "right" as const },
        { title: "NEXT ATTEMPT", value: ({ next_attempt_at }: DeliveryRow) => next_attempt_at },
      ];
      const [argument, filters] = ["the webhook's id", { status: "those in this status" }];
      const { listVerb } = await shared();
      return {
        default: listVerb({ nouns: "deliveries", argument, path: (id) => `${path(id)}/deliveries`, columns, filters }),
      };
    },
  },
  redeliver: {
    summary: "Send a delivery again, with the same id and body",
    load: async () => ({ default: (await import("./actions.ts")).redeliver }),
  },
  roll: {
    summary: "Make a second secret; the old one ends after an overlap",
    load: async () => ({ default: (await import("./actions.ts")).roll }),
  },
  delete: {
    summary: "Delete a webhook and its deliveries",
    load: async () => ({ default: (await shared()).deleteVerb("webhook", path) }),
  },
  listen: { summary: "Receive events on this machine and print them", load: () => import("./listen.ts") },
};

type Row = import("#contract/wire/webhooks.ts").Webhook;
type DeliveryRow = import("#contract/wire/webhooks.ts").Delivery;
