import { expect, test } from "vitest";
import { nextDue } from "#daemon/integrations/syncs/schedule.ts";

test("a cron schedule is due by its own zone, through the change of the clocks, and by UTC without one", () => {
  const before = process.env["TZ"];
  process.env["TZ"] = "Asia/Tokyo";
  try {
    const due = (timezone: string | null, after: string) =>
      new Date(nextDue({ schedule: "30 2 * * *", timezone }, Date.parse(after)) ?? 0).toISOString();
    expect(due(null, "2026-01-10T00:00:00Z")).toBe("2026-01-10T02:30:00.000Z");
    expect(due("Europe/Berlin", "2026-01-10T00:00:00Z")).toBe("2026-01-10T01:30:00.000Z");
    expect(due("Europe/Berlin", "2026-07-10T00:00:00Z")).toBe("2026-07-10T00:30:00.000Z");
    // 02:30 does not exist on that day: it is caught up when the clock has moved.
    expect(due("Europe/Berlin", "2026-03-29T00:00:00Z") >= "2026-03-29T01:00:00.000Z").toBe(true);
    expect(nextDue({ schedule: "manual", timezone: null }, 0)).toBeNull();
  } finally {
    if (before === undefined) delete process.env["TZ"];
    else process.env["TZ"] = before;
  }
});
