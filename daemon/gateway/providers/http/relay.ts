// Between the decoder of a stream and whoever reads it: frames are held until somebody listens, then passed on with back-pressure.
import { errorEvent } from "#daemon/gateway/format/sse.ts";
import type { Exchange } from "#daemon/gateway/upstream/exchange.ts";
import type { FrameSink, StreamEnd } from "../adapter.ts";
import { type Failure, failureBody } from "../failure.ts";
import type { ReadContext, StreamDecoder, Wire } from "../wire.ts";

export interface Relay {
  readonly decoder: StreamDecoder;
  /** True once the outcome was given out: from then on failures go into the stream. */
  given: boolean;
  data(chunk: Buffer): void;
  end(): void;
  fail(problem: Failure): void;
  pipe(sink: FrameSink): Promise<StreamEnd>;
}

export function streamRelay(wire: Wire, context: ReadContext, running: () => Exchange): Relay {
  let held: (Uint8Array | string)[] = [];
  let sink: FrameSink | null = null;
  let ended: StreamEnd | null = null;
  let resolveEnd: ((end: StreamEnd) => void) | null = null;
  let full = false;

  const decoder = wire.decoder(context, (frame) => {
    if (!sink) held.push(frame);
    else if (!sink.write(frame)) full = true;
  });

  function afterPush(): void {
    if (decoder.finished()) {
      running().finish();
      finish({ result: "completed", usage: decoder.usage(), failure: null });
      return;
    }
    if (!full || !sink) return;
    full = false;
    running().pause();
    void sink.drained().then(() => running().resume());
  }

  function finish(end: StreamEnd): void {
    ended ??= end;
    if (sink) resolveEnd?.(ended);
  }

  const relay: Relay = {
    decoder,
    given: false,
    data(chunk) {
      decoder.push(chunk);
      afterPush();
    },
    end() {
      decoder.end();
      finish({ result: "completed", usage: decoder.usage(), failure: null });
    },
    fail(problem) {
      if (problem.kind !== "aborted") {
        const frame = errorEvent(failureBody(problem));
        if (sink) sink.write(frame);
        else held.push(frame);
      }
      const result = problem.kind === "aborted" ? "aborted" : "failed";
      finish({ result, usage: decoder.usage(), failure: problem });
    },
    async pipe(to) {
      const frames = held;
      held = [];
      for (const frame of frames) to.write(frame);
      sink = to;
      if (ended) return ended;
      return new Promise((resolve) => {
        resolveEnd = resolve;
      });
    },
  };
  return relay;
}
