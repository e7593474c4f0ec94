// Two of Node's globals that are accessors, which no compiled function can look through: built programs read each once, at their start
// (build.js puts these in the place of the names, in the code of dependencies too).
export const { Buffer, performance } = globalThis;
