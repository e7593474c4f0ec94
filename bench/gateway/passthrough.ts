// The least that a Node gateway can do: node:http in, an undici pool out, bytes untouched. Everything else costs extra on top of this.
import { createServer, type ServerResponse } from "node:http";
import { type Dispatcher, Pool } from "undici";

const pool = new Pool(process.env["UPSTREAM"] ?? "", { connections: 256, pipelining: 1 });

function relay(response: ServerResponse): Dispatcher.DispatchHandler {
  return {
    onRequestStart() {},
    onResponseStart(_controller, status, headers) {
      response.writeHead(status, { "content-type": String(headers["content-type"]) });
    },
    onResponseData(controller, chunk) {
      if (response.write(chunk)) return;
      controller.pause();
      response.once("drain", () => controller.resume());
    },
    onResponseEnd: () => void response.end(),
    onResponseError: () => void response.destroy(),
  };
}

createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on("data", (part: Buffer) => parts.push(part));
  request.on("end", () =>
    pool.dispatch(
      {
        method: "POST",
        path: request.url ?? "/",
        body: Buffer.concat(parts),
        headers: { "content-type": "application/json", authorization: "Bearer bench" },
      },
      relay(response),
    ),
  );
}).listen(Number(process.env["PORT"]), "127.0.0.1", () => console.log("ready"));
