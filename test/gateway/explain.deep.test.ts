// The long form of explain.test.ts: 5,000 engagements.
import "./explain.test.ts";
