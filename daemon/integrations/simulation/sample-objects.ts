// What a simulated database or file holds: systems whose objects only a live connection can tell.

const text = { type: ["null", "string"] };
const time = { type: ["null", "string"], format: "date-time" };

const table = (name: string, fields: Readonly<Record<string, unknown>>) => ({
  name,
  schema: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { id: { type: "integer" }, ...fields, created_at: time, updated_at: time },
    required: ["id"],
  },
  primary_key: ["id"],
  cursor_candidates: ["updated_at", "created_at", "id"],
});

export const sampleObjects = [
  table("public.customers", { name: text, email: text, country: text }),
  table("public.orders", { customer_id: { type: "integer" }, status: text, total: { type: ["null", "number"] } }),
  table("public.products", { sku: text, title: text, price: { type: ["null", "number"] } }),
];
