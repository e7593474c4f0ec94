// What a check of `magic doctor` is given and says.

export interface Check {
  readonly name: string;
  /** fixed: it failed, and was mended just now. */
  readonly status: "ok" | "warning" | "failed" | "fixed";
  readonly detail: string;
  /** What to do about it. */
  readonly next?: string;
}

export interface DoctorOptions {
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly fix: boolean;
}
