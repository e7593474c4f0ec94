// PagerDuty: classic pagination with `more`, never beyond 10,000, and time ranges of six months at most.
import { header } from "../auth.ts";
import { type Ask, type Collection, iso, isoTime, type PageOf, type Vendor } from "../vendor.ts";

const MONTHS = 184 * 86_400_000;

function wrong({ query }: Ask): string | undefined {
  if (Number(query.get("offset") ?? 0) + Number(query.get("limit") ?? 25) > 10_000)
    return "Offset and limit are too large";
  const [since, until] = [query.get("since"), query.get("until")];
  if (since && until && Date.parse(until) - Date.parse(since) > MONTHS) return "The time range must be within 6 months";
  return undefined;
}

const listed = (name: string, record: Collection["record"], more: Partial<Collection> = {}): Collection => ({
  url: `https://api.pagerduty.com/${name}`,
  headers: { accept: "application/vnd.pagerduty+json;version=2" },
  optional: ["query", "include[]", "team_ids[]", "sort_by"],
  pages: { kind: "offset", at: "offset", size: "limit", default: 25, max: 100 },
  body: (_body, ask) => wrong(ask),
  record: (item) => ({
    ...{ id: `P${item.n}`, type: name.replace(/s$/, ""), summary: `The ${item.n}`, html_url: null },
    ...{ self: `https://api.pagerduty.com/${name}/P${item.n}`, ...record(item) },
  }),
  answer: ({ records, offset, size, next }: PageOf) => ({
    [name]: records,
    limit: size,
    offset,
    total: null,
    more: next !== null,
  }),
  ...more,
});

const timed: Partial<Collection> = {
  since: { at: "since", read: isoTime },
  // "The end of the date range": whether it belongs to it is not said.
  until: { at: "until", read: isoTime, inclusive: false },
  optional: ["sort_by", "time_zone", "statuses[]", "team_ids[]", "service_ids[]", "include[]", "is_overview"],
};

const reference = (type: string) => ({ id: "P1", type: `${type}_reference`, summary: "One" });

export default {
  documentation: [
    "https://developer.pagerduty.com/docs/pagination",
    "https://developer.pagerduty.com/docs/rest-api-rate-limits",
    "https://developer.pagerduty.com/api-reference/9d0b4b12e36f9-list-incidents",
    "https://developer.pagerduty.com/api-reference/c661e065403b5-list-log-entries",
    "https://developer.pagerduty.com/api-reference/e960cca205c0f-list-services",
    "https://developer.pagerduty.com/api-reference/c96e889522dd6-list-users",
    "https://developer.pagerduty.com/api-reference/0138639504311-list-teams",
    "https://developer.pagerduty.com/api-reference/51b21014a4f5a-list-escalation-policies",
  ],
  config: { api_key: "secret-key", start_date: "2026-01-01T00:00:00Z" },
  auth: header("authorization", "Token token=secret-key"),
  unauthorized: { status: 401, body: { error: { message: "Your account is not authorized", code: 2006 } } },
  limited: {
    ...{ status: 429, body: { error: { message: "Rate Limit Exceeded", code: 2020 } }, seconds: 7 },
    headers: { "ratelimit-limit": "960", "ratelimit-remaining": "0", "ratelimit-reset": "7" },
  },
  collections: {
    incidents: listed(
      "incidents",
      ({ n, time }) => ({
        ...{ incident_number: n, title: `Incident ${n}`, description: "", status: "resolved", urgency: "high" },
        ...{ incident_key: null, priority: null, service: reference("service"), teams: [], assignments: [] },
        ...{ escalation_policy: reference("escalation_policy"), acknowledgements: [], resolve_reason: null },
        ...{ last_status_change_by: reference("user"), last_status_change_at: iso(time), created_at: iso(time) },
        ...{ updated_at: iso(time), resolved_at: iso(time), alert_counts: { all: 1 }, is_mergeable: true },
      }),
      timed,
    ),
    log_entries: listed(
      "log_entries",
      ({ n, time }) => ({
        ...{ id: `R${n}`, type: "trigger_log_entry", created_at: iso(time), agent: reference("service"), teams: [] },
        ...{ channel: { type: "auto" }, service: reference("service"), incident: reference("incident"), contexts: [] },
        event_details: { description: "x" },
      }),
      timed,
    ),
    services: listed("services", ({ n }) => ({
      ...{ name: `Service ${n}`, description: null, status: "active", alert_creation: "create_alerts_and_incidents" },
      ...{ auto_resolve_timeout: 14_400, acknowledgement_timeout: null, teams: [], integrations: [] },
      ...{ escalation_policy: reference("escalation_policy"), incident_urgency_rule: { type: "constant" } },
      ...{ last_incident_timestamp: null, created_at: "2025-06-01T10:00:00-06:00" },
    })),
    users: listed("users", ({ n }) => ({
      ...{ name: `User ${n}`, email: `user${n}@example.com`, time_zone: "Etc/UTC", color: "purple", role: "user" },
      ...{ job_title: null, description: null, invitation_sent: false, avatar_url: null, teams: [reference("team")] },
      ...{ contact_methods: [reference("email_contact_method")], notification_rules: [] },
    })),
    teams: listed("teams", ({ n }) => ({ name: `Team ${n}`, description: "", default_role: "manager", parent: null })),
    escalation_policies: listed("escalation_policies", ({ n }) => ({
      ...{ name: `Policy ${n}`, description: null, num_loops: 0, on_call_handoff_notifications: "always", teams: [] },
      ...{ escalation_rules: [{ id: "PG1", escalation_delay_in_minutes: 30 }], services: [reference("service")] },
    })),
  },
} satisfies Vendor;
