// magic/client, published: the API of a daemon from TypeScript and JavaScript. 0.1, preview.
import { resources } from "./api/resources.ts";
import { type ClientOptions, createTransport } from "./api/transport.ts";

export type {
  Connection,
  Connector,
  DataObject,
  Delivery,
  ListOptions,
  Page,
  PostOptions,
  Reject,
  Run,
  StartedOAuth,
  Sync,
  Webhook,
} from "./api/resources.ts";
export { type ClientOptions, MagicApiError } from "./api/transport.ts";
export { verifyWebhook, type WebhookEvent, WebhookVerificationError } from "./api/webhook.ts";

export type Magic = ReturnType<typeof resources>;

/** `createClient({ baseUrl, apiKey })`; see src/client/README.md for examples that run. */
export function createClient(options: ClientOptions): Magic {
  return resources(createTransport(options));
}
