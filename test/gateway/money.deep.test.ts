// The same tests at full size.
import "./money.test.ts";
