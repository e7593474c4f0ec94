// docs/gateway.md is true: its examples are valid, its figures are the code's.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readProject } from "#contract/project-check.ts";
import { strategies } from "#contract/project-gateway.ts";
import { usageKeys } from "#contract/wire/usage.ts";
import { compileEngagement } from "#daemon/gateway/engagement/engagement.ts";
import { type FailureKind, failure } from "#daemon/gateway/providers/failure.ts";

const text = readFileSync(new URL("../../docs/gateway.md", import.meta.url), "utf8");
const examples = [...text.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, yaml]) => yaml ?? "");

test("every example is a valid magic.yaml that the gateway takes", () => {
  expect(examples.length).toBe(3);
  for (const yaml of examples) {
    const { config, problems } = readProject(yaml, "docs/gateway.md");
    expect(problems).toEqual([]);
    expect(compileEngagement(config?.gateway).providers.has("sandbox")).toBe(true);
  }
});

test("a key whose variable is not set is told apart from one that nobody wrote", () => {
  const { providers } = compileEngagement({ providers: { openai: { api_key: "" }, google: {} } });
  expect(providers.get("openai")?.missing).toMatch(/api_key is empty: .*without the variable/);
  expect(providers.get("google")?.missing).toBe("gateway.providers.google.api_key is not set");
});

test("what the environment fills in loses the line end of its file, and is no provider where no request can carry it", () => {
  const base_url = "http://127.0.0.1:1/v1\r\n";
  const { providers } = compileEngagement({
    providers: {
      openai: { api_key: "sk-key\r\n", headers: { a: "b\n" }, base_url },
      anthropic: { api_key: "sk-\u20ac" },
      mine: { type: "openai", base_url: "http://a b/v1" },
      bedrock: { api_key: "key", region: "us/east" },
    },
  });
  expect(providers.get("openai")).toMatchObject({
    missing: null,
    baseUrl: "http://127.0.0.1:1/v1",
    credentials: { apiKey: "sk-key" },
    headers: { a: "b" },
  });
  expect(providers.get("anthropic")?.missing).toBe(
    "gateway.providers.anthropic.api_key holds a character that no header can carry",
  );
  expect(providers.get("mine")?.missing).toBe("gateway.providers.mine.base_url is no URL");
  expect(providers.get("bedrock")?.missing).toBe("gateway.providers.bedrock.region is no AWS region");
});

test("every strategy and every key of usage is named", () => {
  for (const strategy of strategies) expect(text).toMatch(new RegExp(`^\\| \`${strategy}\` +\\|`, "m"));
  expect(text).toContain(`--by ${usageKeys.join("|")}`);
});

test("docs/errors.md has every code that a failed provider is told of by", () => {
  const page = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
  const kinds: Record<FailureKind, true> = {
    ...{
      rate_limit: true,
      quota: true,
      auth: true,
      permission: true,
      not_found: true,
      invalid: true,
      overloaded: true,
      internal: true,
    },
    ...{ server: true, timeout: true, reset: true, truncated: true, protocol: true, egress: true, aborted: true },
  };
  for (const kind of Object.keys(kinds) as FailureKind[]) {
    const { code } = failure(kind, "");
    if (code !== null) expect(page).toContain(`| \`${code}\``);
  }
  for (const code of ["unsupported_value", "invalid_image_url", "context_length_exceeded"])
    expect(page).toContain(`| \`${code}\``);
});
