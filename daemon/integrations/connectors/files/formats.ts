// The file formats by name; each is loaded when it is needed.
import type { FileFormat } from "./format.ts";

export type FormatName = "csv" | "jsonl" | "parquet";

export async function formatOf(name: FormatName): Promise<FileFormat> {
  switch (name) {
    case "csv":
      return (await import("./csv.ts")).csv;
    case "jsonl":
      return (await import("./jsonl.ts")).jsonl;
    case "parquet":
      return (await import("./parquet/format.ts")).parquet;
  }
}
