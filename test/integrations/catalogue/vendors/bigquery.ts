// BigQuery's REST API: page tokens, jobs by the time of their creation, 403 for a rate limit that names no wait.
import { oauth } from "../auth.ts";
import { millisTime, type Vendor } from "../vendor.ts";

const base = "https://bigquery.googleapis.com/bigquery/v2/projects/project-1";
const error = (code: number, reason: string, message: string) => ({
  error: { code, message, errors: [{ domain: "global", reason, message }], status: "X" },
});

export default {
  documentation: [
    "https://developers.google.com/identity/protocols/oauth2/web-server#offline",
    "https://cloud.google.com/bigquery/docs/reference/rest/v2/datasets/list",
    "https://cloud.google.com/bigquery/docs/reference/rest/v2/jobs/list",
    "https://cloud.google.com/bigquery/docs/error-messages",
  ],
  config: {
    ...{ project_id: "project-1", client_id: "app-1", client_secret: "secret-app", refresh_token: "secret-refresh" },
    start_date: "2026-01-01T00:00:00Z",
  },
  auth: oauth({
    url: "https://oauth2.googleapis.com/token",
    form: {
      ...{ grant_type: "refresh_token", client_id: "app-1", client_secret: "secret-app" },
      refresh_token: "secret-refresh",
    },
  }),
  unauthorized: {
    status: 401,
    body: error(401, "authError", "Request had invalid authentication credentials."),
  },
  limited: {
    ...{ status: 403, body: error(403, "rateLimitExceeded", "Exceeded rate limits"), seconds: 1 },
  },
  collections: {
    datasets: {
      url: `${base}/datasets`,
      optional: ["all", "filter"],
      pages: { kind: "cursor", at: "pageToken", size: "maxResults", default: 50, max: 1000 },
      record: ({ n }) => ({
        ...{ kind: "bigquery#dataset", id: `project-1:set_${n}`, location: "EU", labels: { team: "data" } },
        datasetReference: { projectId: "project-1", datasetId: `set_${n}` },
      }),
      answer: ({ records, next }) => ({
        ...{ kind: "bigquery#datasetList", datasets: records },
        ...(next === null ? {} : { nextPageToken: next }),
      }),
    },
    jobs: {
      url: `${base}/jobs`,
      params: { projection: /^(full|minimal)$/, allUsers: /^(true|false)$/ },
      optional: ["stateFilter", "maxCreationTime"],
      pages: { kind: "cursor", at: "pageToken", size: "maxResults", default: 50, max: 1000 },
      since: { at: "minCreationTime", read: millisTime },
      order: "newest first",
      record: ({ n, time }) => ({
        ...{ kind: "bigquery#job", id: `project-1:EU.job_${n}`, state: "DONE", user_email: "ann@example.com" },
        jobReference: { projectId: "project-1", jobId: `job_${n}`, location: "EU" },
        statistics: { creationTime: String(time.getTime()), totalBytesProcessed: "1024" },
      }),
      answer: ({ records, next }) => ({
        ...{ kind: "bigquery#jobList", jobs: records },
        ...(next === null ? {} : { nextPageToken: next }),
      }),
    },
  },
} satisfies Vendor;
