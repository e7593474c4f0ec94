// The errors, from the catalogue that makes the answers.
import type { ErrorEntry } from "#contract/errors/entry.ts";
import { type ErrorCode, errors } from "#contract/errors.ts";
import { exitCodes } from "#contract/exit-codes.ts";
import { html, page } from "./html.ts";

const actors: Readonly<Record<ErrorEntry["actor"], string>> = {
  caller: "the caller",
  operator: "whoever runs the daemon",
  magic: "magic itself",
  upstream: "the system behind",
};

export function errorsPage(): string {
  const rows = Object.entries(errors).map(
    ([code, { status, exit, title, actor, retryable, next }]: [string, ErrorEntry]) => html`<tr id="${code}">
<td><a href="/docs/errors/${code}"><code>${code}</code></a></td><td>${status === 0 ? "-" : status}</td><td>${exitCodes[exit]}</td>
<td>${title}. ${next}<br><span class="muted">To be done by ${actors[actor]}${retryable ? "; the same request may pass later" : ""}.</span></td></tr>`,
  );
  const body = html`<h1>Errors</h1>
<p>Every error has a stable code. The API answers with it as <code>code</code> in problem+json (RFC 9457), on the AI gateway in
OpenAI's form, and at the token endpoint in that of RFC 6749; the command line ends with the exit code.</p>
<table><thead><tr><th>Code</th><th>Status</th><th>Exit</th><th>Meaning</th></tr></thead><tbody>${rows}</tbody></table>`;
  return page("magic: errors", body);
}

/** One error's page; undefined for an unknown code. */
export function errorPage(code: string): string | undefined {
  if (!Object.hasOwn(errors, code)) return undefined;
  const { status, exit, title, actor, retryable, next }: ErrorEntry = errors[code as ErrorCode];
  const body = html`<h1><code>${code}</code></h1>
<p>${title}.</p><p>${next}</p>
<table><tbody>
<tr><th>HTTP status</th><td>${status === 0 ? "none: the command line alone" : status}</td></tr>
<tr><th>Exit code</th><td>${exitCodes[exit]} (${exit})</td></tr>
<tr><th>To be done by</th><td>${actors[actor]}</td></tr>
<tr><th>Retry</th><td>${retryable ? "The same request may pass later." : "The same request fails again."}</td></tr>
</tbody></table>`;
  return page(`magic: ${code}`, body);
}
