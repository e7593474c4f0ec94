// Times that the product promises, measured as promised on a calm machine (`MAGIC_TEST_CALM=1`), and with generous room elsewhere: a test
// must not fail because its neighbours keep the processor busy.

/** Milliseconds that something promised within `ms` may take here. */
export function within(ms: number): number {
  return process.env["MAGIC_TEST_CALM"] ? ms : ms + 10_000;
}
