// Who may use which model: the controller's models, the environment, the engagement's lists and the token's models, in this order.
// A denial names the rule and how to change it.
import type { Principal } from "#contract/identity.ts";
import { firstFit, modelPattern, type Pattern } from "#contract/model-pattern.ts";
import type { CallingController } from "#daemon/gateway/call.ts";
import { type ConfiguredProvider, type Engagement, modelName } from "./engagement.ts";

export interface Denial {
  readonly rule: "environment" | "engagement.deny" | "engagement.allow" | "token.models" | "controller.models";
  readonly reason: string;
}

/** Checks candidates for one caller; `asked` is the name in the request (a policy that a token lists opens its candidates). */
export interface Access {
  check(asked: string, provider: ConfiguredProvider, model: string): Denial | null;
}

export function accessOf(engagement: Engagement, principal: Principal, controller: CallingController | null): Access {
  const tokenModels = listOf(principal.gateway?.models);
  return {
    check(asked, provider, model) {
      const name = `${provider.name}/${model}`;
      const undeclared = notInContract(controller, asked, provider.name, model);
      if (undeclared) return undeclared;
      const foreign = otherEnvironment(principal, provider);
      if (foreign) return foreign;
      const denied = firstFit(engagement.deny, provider.name, model);
      if (denied)
        return {
          rule: "engagement.deny",
          reason: `${name} is denied by "${denied.text}" under gateway.models.deny in magic.yaml; remove or narrow that entry`,
        };
      if (!firstFit(engagement.allow, provider.name, model))
        return {
          rule: "engagement.allow",
          reason: `${name} is not in gateway.models.allow of magic.yaml; add "${name}" to that list`,
        };
      if (tokenModels && !lists(tokenModels, asked, provider.name, model))
        return {
          rule: "token.models",
          reason: `${name} is not among this token's models (${texts(tokenModels)}); create a token with --models ${name}`,
        };
      return null;
    },
  };
}

/** What a contract does not list is refused for that, whether it exists or not. */
export function notInContract(
  controller: CallingController | null,
  asked: string,
  provider: string,
  model: string,
): Denial | null {
  const models = listOf(controller?.models);
  if (!controller || !models || lists(models, asked, provider, model)) return null;
  return {
    rule: "controller.models",
    reason: `${modelName({ provider, model })} is not among the models of the controller ${controller.name} (${texts(models)}); add it under scopes.llm.models of its contract`,
  };
}

// The sandbox's tokens see the sandbox provider alone, live ones never see it, not even as a fallback.
function otherEnvironment(principal: Principal, provider: ConfiguredProvider): Denial | null {
  const environment = provider.kind === "sandbox" ? "sandbox" : "live";
  const own = principal.environments ?? [principal.environment];
  if (own.includes(environment)) return null;
  const reason =
    environment === "sandbox"
      ? `${provider.name} is the sandbox's provider and this credential is a live one; use a sandbox token (magic token create)`
      : `${provider.name} is a live provider and this credential is a sandbox one; use sandbox/echo, or a live token (magic token create --live)`;
  return { rule: "environment", reason };
}

const compiled = new WeakMap<readonly string[], readonly Pattern[]>();

function listOf(models: readonly string[] | null | undefined): readonly Pattern[] | null {
  if (!models) return null;
  let patterns = compiled.get(models);
  if (!patterns) {
    patterns = models.map((text) => modelPattern(text));
    compiled.set(models, patterns);
  }
  return patterns;
}

function lists(patterns: readonly Pattern[], asked: string, provider: string, model: string): boolean {
  return (
    patterns.some(({ text }) => text === asked || `policy:${text}` === asked || text === `policy:${asked}`) ||
    firstFit(patterns, provider, model) !== undefined
  );
}

function texts(patterns: readonly Pattern[]): string {
  return patterns.map(({ text }) => text).join(", ") || "none";
}
