// The daemon's program.
export {};
