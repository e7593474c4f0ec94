import { expect, test } from "vitest";
import { json, manifest, read, vendor } from "./one-stream.ts";

const constant = (seconds: number) => ({ type: "ConstantBackoffStrategy", backoff_time_in_seconds: seconds });

test.each<[string, Record<string, unknown>, Record<string, string>, number[]]>([
  ["constant", constant(3), {}, [3, 3]],
  ["exponential", { type: "ExponentialBackoffStrategy", factor: 2 }, {}, [4, 8]],
  ["a header", { type: "WaitTimeFromHeader", header: "X-Wait" }, { "x-wait": "7" }, [7, 7]],
  ["a part of a header", { type: "WaitTimeFromHeader", header: "X-Wait", regex: "\\d+" }, { "x-wait": "9 s" }, [9, 9]],
  ["no such header", { type: "WaitUntilTimeFromHeader", header: "X-Reset", min_wait: 5 }, {}, [5, 5]],
  [
    "a time gone by",
    { type: "WaitUntilTimeFromHeader", header: "X-Reset", min_wait: 5 },
    { "x-reset": "1000" },
    [5, 5],
  ],
  ["none of the manifest's", { type: "WaitTimeFromHeader", header: "X-Wait" }, { "retry-after": "11" }, [11, 11]],
])("waits as the manifest says: %s", async (_name, strategy, headers, expected) => {
  let refusals = 2;
  const origin = await vendor((_request, response) => {
    if (refusals-- > 0) json(response, {}, 503, headers);
    else json(response, { items: [{ id: 1 }] });
  });
  const waits: number[] = [];
  const handler = { type: "DefaultErrorHandler", backoff_strategies: [strategy] };
  await read(manifest(origin, { requester: { error_handler: handler } }), { waits });
  expect(waits).toEqual(expected);
});

test("of several handlers the one that knows the answer decides; tries are counted as they say", async () => {
  let tries = 0;
  const origin = await vendor((_request, response) => {
    tries++;
    json(response, { code: "busy" }, 409);
  });
  const handlers = [
    { type: "DefaultErrorHandler", max_retries: 2, response_filters: [{ http_codes: [418], action: "IGNORE" }] },
    {
      ...{ type: "DefaultErrorHandler", max_retries: 1, backoff_strategies: [constant(1)] },
      response_filters: [{ predicate: "{{ response.code == 'busy' }}", action: "RETRY", error_message: "busy" }],
    },
  ];
  const error_handler = { type: "CompositeErrorHandler", error_handlers: handlers };
  const waits: number[] = [];
  await expect(read(manifest(origin, { requester: { error_handler } }), { waits })).rejects.toThrow(
    "busy (after 3 tries)",
  );
  expect([tries, waits]).toEqual([3, [1, 1]]);
});
