// One label set of a histogram or a counter, found once. prom-client makes a text of the labels at every observation and looks up by it what it then adds
// to, which is several times the work of adding; at thousands of requests a second that counts.
import type { Counter, Histogram } from "prom-client";

export interface Series {
  observe(value: number): void;
}

export interface Tally {
  add(amount: number): void;
}

/** What prom-client (its version is exact) keeps of a label set, and of a histogram. */
interface Counted {
  readonly labels: Readonly<Record<string, string>>;
  /** By upper bound, as text. */
  readonly bucketValues: Record<string, number>;
  sum: number;
  count: number;
}
interface Kept {
  readonly hashMap: Readonly<Record<string, Counted>>;
  readonly upperBounds: readonly number[];
}

/** The series of these labels, made where there is none yet. Keep it: finding it is what costs. */
export function seriesOf<L extends string>(histogram: Histogram<L>, labels: Readonly<Record<L, string>>): Series {
  const { upperBounds } = histogram as unknown as Kept;
  const counted = find(histogram, labels) ?? make(histogram, labels);
  const bounds = upperBounds.map((bound) => ({ bound, key: String(bound) }));
  return {
    observe(value) {
      counted.sum += value;
      counted.count++;
      for (const { bound, key } of bounds)
        if (value <= bound) {
          counted.bucketValues[key] = (counted.bucketValues[key] ?? 0) + 1;
          return;
        }
    },
  };
}

/** A counter's, as `seriesOf` a histogram's. */
export function tallyOf<L extends string>(counter: Counter<L>, labels: Readonly<Record<L, string>>): Tally {
  // Its type says nothing of what it answers: under which text it keeps these labels.
  const { labelHash } = counter.inc(labels, 0) as unknown as { readonly labelHash: string };
  const { hashMap } = counter as unknown as { readonly hashMap: Readonly<Record<string, { value: number }>> };
  const counted = hashMap[labelHash] as { value: number };
  return {
    add(amount) {
      counted.value += amount;
    },
  };
}

function find<L extends string>(
  histogram: Histogram<L>,
  labels: Readonly<Record<string, string>>,
): Counted | undefined {
  const all = Object.values((histogram as unknown as Kept).hashMap);
  return all.find((one) => Object.keys(labels).every((name) => one.labels[name] === labels[name]));
}

function make<L extends string>(histogram: Histogram<L>, labels: Readonly<Record<L, string>>): Counted {
  histogram.zero(labels);
  return find(histogram, labels) as Counted;
}
