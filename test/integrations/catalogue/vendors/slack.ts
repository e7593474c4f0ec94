// Slack's Web API: cursors in `response_metadata`, and 200 with `ok: false` for most errors.
import { bearer } from "../auth.ts";
import { type Collection, type Item, type PageOf, retryAfter, seconds, type Vendor } from "../vendor.ts";

const method = (name: string, member: string, record: Collection["record"]): Collection => ({
  url: `https://slack.com/api/${name}`,
  optional: ["types", "exclude_archived", "team_id", "include_locale"],
  pages: { kind: "cursor", at: "cursor", size: "limit", default: 100, max: 1000 },
  record,
  answer: ({ records, next }: PageOf) => ({
    ...{ ok: true, [member]: records },
    response_metadata: { next_cursor: next ?? "" },
  }),
});

export default {
  documentation: [
    "https://docs.slack.dev/reference/methods/users.list",
    "https://docs.slack.dev/reference/methods/conversations.list",
    "https://docs.slack.dev/apis/web-api/rate-limits",
  ],
  config: { bot_token: "secret-xoxb" },
  auth: bearer("secret-xoxb"),
  unauthorized: { status: 200, body: { ok: false, error: "invalid_auth" } },
  limited: retryAfter({ ok: false, error: "ratelimited" }),
  collections: {
    users: method("users.list", "members", ({ n, time }: Item) => ({
      ...{ id: `W${n}`, team_id: "T1", name: `user${n}`, real_name: `User ${n}`, deleted: false, is_bot: false },
      ...{ tz: "Europe/Berlin", profile: { email: `user${n}@example.com` }, updated: seconds(time) },
    })),
    channels: method("conversations.list", "channels", ({ n, time }: Item) => ({
      ...{ id: `C${n}`, name: `channel-${n}`, is_private: false, is_archived: false, num_members: n, creator: "W1" },
      ...{ created: seconds(time), topic: { value: "", creator: "", last_set: 0 }, purpose: { value: "all" } },
    })),
  },
} satisfies Vendor;
