// What a simulated database or file holds: systems whose objects only a live connection can tell. Shown by what shows the live ones.
import { discoveredObject } from "../engine/discovered.ts";
import type { Column, ColumnType } from "../engine/types.ts";

const text: ColumnType = { kind: "string" };
const number: ColumnType = { kind: "int", bits: 64 };
const money: ColumnType = { kind: "decimal", precision: 12, scale: 2 };
const time: ColumnType = { kind: "timestamp", zone: true };

const column = (name: string, type: ColumnType, nullable = true): Column => ({ name, type, nullable });

const table = (name: string, columns: readonly Column[]) => {
  const own = [column("id", number, false), ...columns, column("created_at", time), column("updated_at", time)];
  return discoveredObject(name, { columns: own, primaryKey: ["id"] }, null);
};

export const sampleObjects = [
  table("public.customers", [column("name", text), column("email", text), column("country", text)]),
  table("public.orders", [column("customer_id", number, false), column("status", text), column("total", money)]),
  table("public.products", [column("sku", text), column("title", text), column("price", money)]),
];
