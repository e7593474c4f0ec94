// Several tasks at once, their results as one stream: bounded in number and in what waits to be taken.

/** Runs `work` over `tasks`, at most `limit` at a time; a failure ends all. Order holds within a task only. */
export async function* parallel<Task, Result>(
  tasks: AsyncIterable<Task>,
  limit: number,
  work: (task: Task) => AsyncIterable<Result>,
): AsyncGenerator<Result> {
  if (limit <= 1) {
    for await (const task of tasks) yield* work(task);
    return;
  }
  const source = tasks[Symbol.asyncIterator]();
  const running = new Map<
    number,
    { iterator: AsyncIterator<Result>; step: Promise<{ id: number; result: IteratorResult<Result> }> }
  >();
  let next = 0;
  let drained = false;
  const advance = (id: number, iterator: AsyncIterator<Result>): void => {
    const step = iterator.next().then((result) => ({ id, result }));
    step.catch(() => {});
    running.set(id, { iterator, step });
  };
  let failed = false;
  try {
    for (;;) {
      while (!drained && running.size < limit) {
        const task = await source.next();
        if (task.done) drained = true;
        else advance(next++, work(task.value)[Symbol.asyncIterator]());
      }
      if (!running.size) return;
      const { id, result } = await Promise.race([...running.values()].map((each) => each.step));
      const iterator = running.get(id)?.iterator as AsyncIterator<Result>;
      running.delete(id);
      if (result.done) continue;
      yield result.value;
      advance(id, iterator);
    }
  } catch (error) {
    failed = true;
    throw error;
  } finally {
    const others = [...running.values()].map(({ iterator }) => iterator.return?.());
    const ended = Promise.allSettled([source.return?.(), ...others]);
    // One of them may sit out a limit, or wait for a report, for an hour: a failure is told before.
    if (!failed) await ended;
  }
}
