// Records on their way from a source to a destination: raw where both can, else row by row, with checkpoints where there is no snapshot.
import { MagicError } from "#contract/errors.ts";
import type { Reject } from "#contract/sync.ts";
import { countOf, joined, readAhead } from "./batches.ts";
import { converterOf } from "./convert.ts";
import type { WritePlan, WriteSession } from "./destination.ts";
import { checksOf, misfitsOf } from "./fit.ts";
import { keyOf } from "./rejects.ts";
import { keptState } from "./resume.ts";
import { addRejects, doneOf, type Run } from "./run-record.ts";
import type { Partition, SourceStream } from "./source.ts";
import type { Row } from "./types.ts";

// A source without a snapshot is committed on the way: a long read that dies loses at most this much, and one that dies again and again
// soon after it has begun gets on all the same.
const CHECKPOINT_ROWS = 100_000;
const FIRST_CHECKPOINT_MS = 1000;
const CHECKPOINT_MS = 10_000;

// Every partition, raw where both sides can, else as rows; then what the destination makes of all of them.
export async function moveAll(
  run: Run,
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
  rawAllowed: boolean,
): Promise<void> {
  run.phase = "read";
  run.partitions.total = stream.partitions.length;
  run.total = stream.partitions.reduce<number | null>(
    (sum, { records }) => (sum === null || records === null ? null : sum + records),
    0,
  );
  const format = rawAllowed ? stream.rawFormats.find((one) => session.rawFormats.includes(one)) : undefined;
  // What a type may change on the way in is looked at, value by value: by a source of CSV in passing.
  const checks = checksOf(plan.columns, session.existing, session.fitNew);
  const unread = format === "csv" || checks.length === 0;
  for (const partition of stream.partitions) {
    if (format && unread && stream.copyRaw && session.writeRaw) {
      const framed = format !== "csv";
      const raw = await stream.copyRaw(partition, { format, framed, types: session.rawTypes, checks });
      run.passing = () => raw.passed?.() ?? 0;
      const { written, bytes } = await session.writeRaw(raw);
      run.passing = () => 0;
      const sent = await raw.count();
      run.read += sent ?? written;
      run.bytes += bytes;
      if (sent !== null && sent !== written)
        throw new MagicError(
          // The row-by-row way sees which record it was.
          format === "csv" ? "bad_record" : "proof_failed",
          `The source sent ${sent} rows and the destination took ${written}.`,
        );
    } else await moveRows(run, stream, session, plan, partition);
    run.partitions.done++;
    run.dog.touch();
  }
  run.phase = "merge";
  addRejects(run, plan, await session.merge());
}

async function moveRows(
  run: Run,
  stream: SourceStream,
  session: WriteSession,
  plan: WritePlan,
  partition: Partition,
): Promise<void> {
  const convert = converterOf(plan.columns, session.existing);
  const misfit = misfitsOf(checksOf(plan.columns, session.existing, session.fitNew));
  const name = keyOf(plan);
  let uncommitted = 0;
  let lastCommit = performance.now();
  let pause = FIRST_CHECKPOINT_MS;
  let next = 0;
  // Without the rows of which the destination's types would drop something.
  const fitting = (all: readonly Row[], given: readonly number[] | undefined) => {
    const rows: Row[] = [];
    const places: number[] = [];
    const rejects: Reject[] = [];
    for (const [at, row] of all.entries()) {
      const place = given?.[at] ?? next + at;
      const found = misfit?.(row);
      if (found) rejects.push({ key: name(row, place), ...found });
      else {
        rows.push(row);
        places.push(place);
      }
    }
    next = given ? (given.at(-1) ?? next - 1) + 1 : next + all.length;
    addRejects(run, plan, rejects);
    return { rows, places };
  };
  run.dog.waiting(`rows of ${run.spec.source.object}`);
  // Rows that nobody needs to look at may come as the destination takes them.
  const types = !convert && !misfit && session.writePacked ? session.rawTypes : undefined;
  for await (const batch of readAhead(joined(stream.read(partition, types)))) {
    const count = countOf(batch);
    run.read += count + (batch.rejects?.length ?? 0);
    run.bytes += batch.bytes;
    addRejects(run, plan, batch.rejects ?? []);
    let rows = convert ? batch.rows.map(convert) : batch.rows;
    let places = batch.places;
    if (misfit) ({ rows, places } = fitting(rows, places));
    if (rows.length > 0) addRejects(run, plan, (await session.write(rows, places)).rejects);
    if (batch.packed) addRejects(run, plan, (await session.writePacked?.(batch.packed))?.rejects ?? []);
    run.dog.touch();
    uncommitted += count;
    const due = uncommitted >= CHECKPOINT_ROWS || performance.now() - lastCommit >= pause;
    const reached = batch.state;
    if (reached && due && session.checkpoint && plan.kind !== "replace" && uncommitted > 0) {
      if ((await session.mayCheckpoint?.()) !== false) {
        await session.checkpoint((late) => {
          addRejects(run, plan, late);
          return keptState(run.spec, plan, reached, doneOf(run));
        });
        run.written = run.read - run.rejects.count;
        pause = Math.min(2 * pause, CHECKPOINT_MS);
      }
      uncommitted = 0;
      lastCommit = performance.now();
    }
  }
}
