// Money is counted in whole pico-dollars (1e-12 US dollars), so that sums never drift.

export const PICO_PER_DOLLAR = 1_000_000_000_000;
