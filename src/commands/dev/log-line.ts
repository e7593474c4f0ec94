// Log lines as `magic dev` shows them: one line an invocation or model call, the handler's own words, and whatever else is said.
import { list } from "#contract/json-object.ts";
import type { LogEntry } from "#contract/wire/logs.ts";
import { inLine, showField, showLogLine } from "#output/log-line.ts";
import type { Paint } from "#output/paint.ts";
import { clock } from "./show.ts";

/** The text of a line; undefined for one that says nothing more than another one does. */
export function devLogLine(line: LogEntry): ((paint: Paint) => string) | undefined {
  const { event, level } = line;
  if (event === "controller.invoked") return (paint) => invoked(line, paint);
  if (event === "gateway.call") return (paint) => called(line, paint);
  if (event === "project.invalid") return (paint) => projectInvalid(line, paint);
  const fields = line["fields"];
  if (typeof line["controller"] === "string" && typeof fields === "object" && fields !== null)
    return (paint) => said(line, fields as Record<string, unknown>, paint);
  // Calls of controllers and models have lines of their own, refused ones too; the command line's own questions are of no interest.
  if (event === "http.request" && level !== "error" && level !== "warn") {
    const route = String(line["route"] ?? "");
    if (/\/invoke$|\/chat\/completions$|^\/v1\/dev\//.test(route) || line["identity"] === "local") return undefined;
  }
  return showLogLine(line);
}

function invoked(line: LogEntry, paint: Paint): string {
  const outcome = String(line["outcome"]);
  const ok = outcome === "ok";
  const mark = ok ? paint.green("✔") : paint.red("✖");
  const what = ok ? "" : ` ${paint.red(outcome)}`;
  const why = ok ? "" : ` ${messageOf(line["error"])}`;
  return `${clock(line.time, paint)} ${mark} ${paint.bold(String(line["controller"]))}${what} ${milliseconds(line["duration_ms"])}${why} ${request(line, paint)}`;
}

function called(line: LogEntry, paint: Paint): string {
  const ok = line["outcome"] === "completed";
  const mark = ok ? paint.green("✦") : paint.red("✦");
  const model = [line["provider"], line["model"]].filter((part) => typeof part === "string").join("/");
  const tokens =
    typeof line["prompt_tokens"] === "number" ? `${line["prompt_tokens"]}+${line["completion_tokens"]} tokens` : "";
  const cost = typeof line["cost_usd"] === "number" ? `$${line["cost_usd"]}` : "";
  const outcome = ok ? "" : paint.red(String(line["outcome"]));
  const parts = [
    paint.bold(model || String(line["asked"] ?? "")),
    outcome,
    milliseconds(line["duration_ms"]),
    tokens,
    cost,
  ];
  return `${clock(line.time, paint)} ${mark} ${parts.filter(Boolean).join(" ")} ${request(line, paint)}`;
}

function said(line: LogEntry, fields: Record<string, unknown>, paint: Paint): string {
  const colour = line.level === "error" ? paint.red : line.level === "warn" ? paint.yellow : paint.dim;
  const values = Object.entries(fields).map((field) => showField(field, paint));
  const head = `${clock(line.time, paint)} ${colour(line.level === "info" ? "·" : line.level)} ${String(line["controller"])}:`;
  return inLine([head, String(line["message"] ?? line.event), ...values, request(line, paint)]);
}

function projectInvalid(line: LogEntry, paint: Paint): string {
  const problems = list(line["problems"]).map(String);
  const head = `${clock(line.time, paint)} ${paint.red("✖")} ${paint.bold("magic.yaml")} is not valid: what was there before stays in force`;
  return [head, ...problems.map((problem) => `  ${paint.red("✖")} ${problem}`)].join("\n");
}

function messageOf(error: unknown): string {
  const message = (error as { message?: unknown } | undefined)?.message;
  return typeof message === "string" ? message : "";
}

function milliseconds(value: unknown): string {
  return typeof value === "number" ? `${value < 10 ? value.toFixed(1) : Math.round(value)} ms` : "";
}

function request(line: LogEntry, paint: Paint): string {
  return typeof line["request_id"] === "string" ? paint.dim(line["request_id"]) : "";
}
