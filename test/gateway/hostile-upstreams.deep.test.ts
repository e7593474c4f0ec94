// The long form of hostile-upstreams.test.ts: 400 variations of each recording.
import "./hostile-upstreams.test.ts";
