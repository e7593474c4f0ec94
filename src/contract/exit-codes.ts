/** The exit codes of the command line: one table, the same for every command. */
export const exitCodes = {
  ok: 0,
  internal: 1,
  usage: 2,
  invalid: 3,
  not_found: 4,
  auth: 5,
  daemon_unavailable: 6,
  conflict_or_limit: 7,
  upstream: 8,
  interrupted: 130,
} as const;

export type ExitName = keyof typeof exitCodes;
export type ExitCode = (typeof exitCodes)[ExitName];
