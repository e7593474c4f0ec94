// The receiving side of webhooks.
import { signatureProblem } from "#shared/webhook-signature.ts";

export interface WebhookEvent {
  /** `sync.completed`, `sync.failed`, `connection.failed`, `data.changed`, `webhook.test`. */
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
  /** The same for every attempt: keep it to recognise an event that came twice. */
  readonly id: string;
}

/** The delivery is not to be believed; its message says why. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

/**
 * The event, when its Standard Webhooks signature fits and it is at most five minutes old.
 *
 * @param body exactly as it came, not parsed and serialised again
 * @throws WebhookVerificationError
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: Readonly<Record<string, string | readonly string[] | undefined>> | Headers,
  secret: string | undefined,
  now: number = Date.now(),
): WebhookEvent {
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const plain = headers instanceof Headers ? Object.fromEntries(headers) : headers;
  const problem = signatureProblem({ body: text, headers: plain }, secret ?? "", now);
  if (problem !== undefined) throw new WebhookVerificationError(problem);
  const id = Object.entries(plain).find(([name]) => name.toLowerCase() === "webhook-id")?.[1];
  try {
    return { ...(JSON.parse(text) as Omit<WebhookEvent, "id">), id: String(id) };
  } catch (cause) {
    throw new WebhookVerificationError("the body is not JSON", { cause });
  }
}
