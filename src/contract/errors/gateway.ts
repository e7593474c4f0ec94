// The AI gateway: models, prices, budgets.
import { caller, type ErrorEntry, operator } from "./entry.ts";

export const gatewayErrors = {
  model_not_found: {
    ...caller,
    status: 404,
    exit: "not_found",
    title: "There is no such model",
    next: "List the models with GET /v1/models or `magic model list`.",
  },
  model_not_allowed: {
    ...caller,
    status: 403,
    exit: "auth",
    title: "The model is not allowed",
    next: "Use an allowed model, or change the rule that the detail names.",
  },
  model_unpriced: {
    ...operator,
    status: 400,
    exit: "invalid",
    title: "The model has no price",
    next: "Add the line under gateway.prices that the detail shows, or set gateway.allow_unpriced.",
  },
  unsupported_parameter: {
    ...caller,
    status: 400,
    exit: "invalid",
    title: "The provider does not support the parameter",
    next: "Leave the parameter out, choose another model, or set drop_unsupported.",
  },
  insufficient_quota: {
    ...caller,
    status: 429,
    exit: "conflict_or_limit",
    title: "The budget is used up",
    next: "Raise the budget that the detail names.",
  },
  budget_exceeded: {
    ...caller,
    status: 429,
    exit: "conflict_or_limit",
    title: "The budget is used up",
    next: "Raise the budget that the detail names.",
  },
  provider_not_configured: {
    ...operator,
    status: 400,
    exit: "invalid",
    title: "The provider is not configured",
    next: "Add it under gateway.providers in magic.yaml; a variable that it names must be set where `magic daemon restart` is run.",
  },
} as const satisfies Record<string, ErrorEntry>;
