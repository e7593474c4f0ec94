// The long form of hostile-bodies.test.ts: 10,000 bodies.
import "./hostile-bodies.test.ts";
