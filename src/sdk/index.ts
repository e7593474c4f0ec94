// What a controller's handler imports: `import { defineHandler, reply } from "magic/sdk"`.
// Types and a few pure functions only: the request itself is made inside the cell, every power it has is brokered by the daemon.
export * from "./errors.ts";
export * from "./handler.ts";
export * from "./request.ts";
