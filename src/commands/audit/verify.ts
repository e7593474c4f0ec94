// magic audit verify: walks the whole chain; exit code 3 when something was changed.
import { verifyAudit } from "#client/audit.ts";
import { clientOf } from "#commands/client-of.ts";
import { defineCommand } from "#commands/command.ts";
import { exitCodes } from "#contract/exit-codes.ts";

export default defineCommand({
  async run(context) {
    const found = await verifyAudit(await clientOf(context));
    context.output.result(found, (paint) =>
      found.valid
        ? `${paint.green("✔")} ${counted(found.entries - found.unproven)}, none changed, none missing.${before(found.unproven)}`
        : [
            `${paint.red("✖")} The audit log was tampered with (${counted(found.entries)}):`,
            ...found.problems.map(({ code, sequence }) => `  ${code} at entry ${sequence}`),
          ].join("\n"),
    );
    return found.valid ? exitCodes.ok : exitCodes.invalid;
  },
});

function before(unproven: number): string {
  return unproven === 0 ? "" : ` ${counted(unproven)} before, of a master key that was given up, cannot be proven.`;
}

function counted(entries: number): string {
  return entries === 1 ? "1 entry" : `${entries} entries`;
}
