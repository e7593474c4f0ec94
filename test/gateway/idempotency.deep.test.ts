// The same tests at full size.
import "./idempotency.test.ts";
