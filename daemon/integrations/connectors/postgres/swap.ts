// A full refresh's last step: the shadow table takes the old one's place, with its indexes, constraints, grants and owner; or, where
// something hangs on the old table (a view, a foreign key, a trigger, a policy), its rows are exchanged in place. In one transaction.
import { MagicError } from "#contract/errors.ts";
import type { Reject } from "#contract/sync.ts";
import { DELETED_AT, type WritePlan } from "../../engine/destination.ts";
import { belongings } from "./belongings.ts";
import type { PostgresLink } from "./connect.ts";
import { stillReferred } from "./errors.ts";
import { takeOutMiscomputed } from "./generated.ts";
import { hasUniqueIndex, type MergeTarget, putter, takeOutDuplicates } from "./merge.ts";
import { canSift, sift } from "./sift.ts";
import { ident, literal } from "./sql.ts";

export interface Place {
  readonly schema: string;
  readonly name: string;
  /** Of the old table; null: there is none. */
  readonly oid: string | null;
}

/** Indexes and constraints of the old table, with its primary key or without, made on the loaded shadow under names of ours. */
export async function copyIndexes(link: PostgresLink, old: string, shadow: string, key: boolean): Promise<Renames> {
  const constraints = await link.rows<{ name: string; def: string }>(
    "SELECT conname AS name, pg_get_constraintdef(oid) AS def FROM pg_constraint WHERE conrelid = $1::oid AND contype IN ('p', 'u', 'x', 'f') AND (contype <> 'p' OR $2::boolean) ORDER BY contype DESC",
    [old, String(key)],
  );
  const indexes = await link.rows<{ name: string; def: string; quoted: string }>(
    `SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS def, quote_ident(n.nspname) || '.' || quote_ident(t.relname) AS quoted
       FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid JOIN pg_namespace n ON n.oid = t.relnamespace
      WHERE i.indrelid = $1::oid AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x'))`,
    [old],
  );
  const renames = { key: null, constraints: [] as Rename[], indexes: [] as Rename[] };
  for (const [at, { name, def }] of constraints.entries()) {
    const ours = `_magic_c${at}_${old}`;
    await link.run(`ALTER TABLE ${shadow} ADD CONSTRAINT ${ident(ours)} ${def}`);
    renames.constraints.push([ours, name]);
  }
  for (const [at, { name, def, quoted }] of indexes.entries()) {
    const ours = `_magic_i${at}_${old}`;
    const place = def.indexOf(` ON ${quoted} `);
    if (place < 0) continue;
    const unique = def.startsWith("CREATE UNIQUE") ? "UNIQUE " : "";
    await link.run(`CREATE ${unique}INDEX ${ident(ours)} ON ${shadow} ${def.slice(place + quoted.length + 5)}`);
    renames.indexes.push([ours, name]);
  }
  return renames;
}

type Rename = [ours: string, name: string];

export interface Renames {
  /** Of a primary key that the old table lacks: to the usual name, unless something else has it. */
  readonly key: Rename | null;
  readonly constraints: readonly Rename[];
  readonly indexes: readonly Rename[];
}

export const noRenames: Renames = { key: null, constraints: [], indexes: [] };

/** True where the table cannot simply be replaced by another one. */
export async function mustStay(link: PostgresLink, oid: string): Promise<boolean> {
  const [row] = await link.rows<{ stay: string }>(
    `SELECT (NOT pg_has_role(c.relowner, 'USAGE') OR c.relkind <> 'r' OR c.relispartition OR c.relrowsecurity OR c.relhassubclass OR c.relhasrules OR c.relreplident <> 'd'
        OR EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid)
        OR EXISTS (SELECT FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)
        OR EXISTS (SELECT FROM pg_constraint WHERE confrelid = c.oid)
        OR EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid)
        OR EXISTS (SELECT FROM pg_publication_rel WHERE prrelid = c.oid)
        OR EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = c.oid AND NOT has_schema_privilege(stxnamespace, 'CREATE'))
        OR EXISTS (SELECT FROM pg_depend WHERE refclassid = 'pg_class'::regclass AND refobjid = c.oid AND deptype = 'n' AND classid IN ('pg_rewrite'::regclass, 'pg_proc'::regclass))
        OR EXISTS (SELECT FROM pg_depend d JOIN pg_type t ON t.oid = d.refobjid WHERE d.refclassid = 'pg_type'::regclass AND c.reltype IN (t.oid, t.typelem) AND d.deptype = 'n'))::text AS stay
       FROM pg_class c WHERE c.oid = $1::oid`,
    [oid],
  );
  return row?.stay === "true";
}

/** Before the first row: identity columns that the rows do not bring are numbered from where the old table's numbers end. */
export async function numberOn(link: PostgresLink, old: string, shadow: string, plan: WritePlan): Promise<void> {
  for (const sequence of await ownedSequences(link, old, shadow, plan))
    if (!sequence.brought) await continueSequence(link, sequence);
}

/** Drops the old table and gives the shadow its name, owner, grants and the names of its indexes. */
export async function swap(
  link: PostgresLink,
  place: Place,
  shadowName: string,
  plan: WritePlan,
  renames: Renames,
): Promise<void> {
  const shadow = `${ident(place.schema)}.${ident(shadowName)}`;
  const final = `${ident(place.schema)}.${ident(place.name)}`;
  const sequences = place.oid === null ? [] : await ownedSequences(link, place.oid, shadow, plan);
  const more = place.oid === null ? [] : await belongings(link, place.oid);
  if (place.oid !== null) {
    await copyGrants(link, place.oid, shadow);
    // A serial column's sequence would go with the old table, though the new one's default needs it.
    for (const { kind, old, column } of sequences)
      if (kind === "serial") await link.run(`ALTER SEQUENCE ${old} OWNED BY ${shadow}.${column}`);
    await link.runBetweenReaders(`DROP TABLE ${final}`);
    // An identity column has a sequence of its own: it takes the old one's name and goes on where that was, or where the rows have got it.
    for (const sequence of sequences) {
      if (sequence.ours === null) continue;
      if (sequence.brought) await continueSequence(link, sequence);
      await link.run(`ALTER SEQUENCE ${sequence.ours} RENAME TO ${sequence.name}`);
    }
  }
  await link.run(`ALTER TABLE ${shadow} RENAME TO ${ident(place.name)}`);
  const constraints = [...renames.constraints];
  if (renames.key && !(await isTaken(link, place.schema, renames.key[1]))) constraints.push(renames.key);
  for (const [ours, name] of constraints)
    await link.run(`ALTER TABLE ${final} RENAME CONSTRAINT ${ident(ours)} TO ${ident(name)}`);
  for (const [ours, name] of renames.indexes)
    await link.run(`ALTER INDEX ${ident(place.schema)}.${ident(ours)} RENAME TO ${ident(name)}`);
  for (const sql of more) await link.run(sql);
}

/** Whether a table, an index or their like has the name. */
export async function isTaken(link: PostgresLink, schema: string, name: string): Promise<boolean> {
  const [row] = await link.rows<{ there: string | null }>("SELECT to_regclass($1)::text AS there", [
    `${ident(schema)}.${ident(name)}`,
  ]);
  return row?.there != null;
}

interface OwnedSequence {
  readonly kind: "serial" | "identity";
  /** Quoted, with its schema. */
  readonly old: string;
  readonly name: string;
  readonly column: string;
  /** Whether the rows have values for the column. */
  readonly brought: boolean;
  /** The shadow's, of an identity column. */
  readonly ours: string | null;
  readonly value: string;
  readonly called: string;
}

async function continueSequence(link: PostgresLink, { ours, value, called }: OwnedSequence): Promise<void> {
  if (ours !== null) await link.run(`SELECT setval(${literal(ours)}, ${value}, ${called})`);
}

async function ownedSequences(
  link: PostgresLink,
  old: string,
  shadow: string,
  { columns }: WritePlan,
): Promise<OwnedSequence[]> {
  const rows = await link.rows<Record<string, string | null>>(
    `SELECT d.deptype AS kind, s.oid::regclass::text AS old, quote_ident(s.relname) AS name, quote_ident(a.attname) AS column, (a.attname::text = ANY ($3::text[]))::text AS brought,
            CASE WHEN d.deptype = 'i' THEN pg_get_serial_sequence($2, a.attname) END AS ours
       FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S' JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
      WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = $1::oid AND d.deptype IN ('a', 'i')`,
    [old, shadow, columns.map(({ name }) => name)],
  );
  const sequences: OwnedSequence[] = [];
  for (const row of rows) {
    const name = row["old"] ?? "";
    const [place] = await link.rows<{ v: string; c: string }>(
      `SELECT last_value::text AS v, is_called::text AS c FROM ${name}`,
    );
    sequences.push({
      kind: row["kind"] === "i" ? "identity" : "serial",
      old: name,
      name: row["name"] ?? "",
      column: row["column"] ?? "",
      brought: row["brought"] === "true",
      ours: row["ours"] ?? null,
      value: place?.v ?? "1",
      called: place?.c ?? "false",
    });
  }
  return sequences;
}

// Those of the old table alone: ALTER DEFAULT PRIVILEGES may have granted on the new one what somebody revoked on the old.
async function copyGrants(link: PostgresLink, old: string, shadow: string): Promise<void> {
  const grantee = "CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS grantee";
  const strangers = await link.rows<{ grantee: string }>(
    `SELECT DISTINCT ${grantee} FROM pg_class c CROSS JOIN LATERAL aclexplode(c.relacl) a WHERE c.oid = $1::regclass AND a.grantee <> c.relowner`,
    [shadow],
  );
  for (const { grantee } of strangers) await link.run(`REVOKE ALL ON ${shadow} FROM ${grantee}`);
  const grants = await link.rows<{ privilege: string; grantee: string; option: string; columns: string }>(
    `SELECT a.privilege_type AS privilege, ${grantee}, a.is_grantable::text AS option, g.columns
       FROM pg_class c CROSS JOIN LATERAL (SELECT c.relacl AS acl, '' AS columns
         UNION ALL SELECT attacl, format(' (%I)', attname) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) g
       CROSS JOIN LATERAL aclexplode(g.acl) a WHERE c.oid = $1::oid AND a.grantee <> c.relowner`,
    [old],
  );
  for (const { privilege, grantee, option, columns } of grants)
    await link.run(
      `GRANT ${privilege}${columns} ON ${shadow} TO ${grantee}${option === "true" ? " WITH GRANT OPTION" : ""}`,
    );
  const [about] = await link.rows<{ owner: string; mine: string; comment: string | null }>(
    "SELECT quote_ident(pg_get_userbyid(relowner)) AS owner, (relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user))::text AS mine, obj_description(oid, 'pg_class') AS comment FROM pg_class WHERE oid = $1::oid",
    [old],
  );
  if (about && about.mine !== "true") await link.run(`ALTER TABLE ${shadow} OWNER TO ${about.owner}`);
  if (about?.comment) await link.run(`COMMENT ON TABLE ${shadow} IS ${literal(about.comment)}`);
}

/** Whether other tables refer to rows of this one, and by what rows that stay are told then: the sync's key, else the table's own. */
async function keyOfReferred({
  link,
  table,
  plan,
}: MergeTarget): Promise<{ referenced: boolean; key: readonly string[] }> {
  const asked = plan.primaryKey;
  const [told] = await link.rows<{ there: string; follows: string | null }>(
    "SELECT (count(*) > 0)::text AS there, bool_or(confdeltype IN ('c', 'n', 'd') AND conrelid <> confrelid)::text AS follows FROM pg_constraint WHERE confrelid = $1::regclass",
    [table],
  );
  if (told?.there !== "true") return { referenced: false, key: asked };
  if (asked.length > 0 && (await hasUniqueIndex(link, table, asked))) return { referenced: true, key: asked };
  const own = await link.rows<{ name: string }>(
    "SELECT a.attname AS name FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = $1::regclass AND i.indisprimary",
    [table],
  );
  const brought = own.length > 0 && own.every(({ name }) => plan.columns.some((column) => column.name === name));
  if (brought && plan.deletes !== "soft") return { referenced: true, key: own.map(({ name }) => name) };
  if (told.follows === "true")
    throw new MagicError(
      "destination_refused",
      `Rows of other tables refer to those of ${table} and would go with them: bring its primary key (--primary-key), or run incrementally.`,
    );
  return { referenced: false, key: asked };
}

/** Exchanges the rows and leaves the table itself; readers see the old rows until the commit. Returns the rows that it refuses. */
export async function exchangeRows(given: MergeTarget, shadow: string): Promise<Reject[]> {
  const { link, table } = given;
  const { referenced, key } = await keyOfReferred(given);
  const plan = { ...given.plan, primaryKey: key };
  const target = { ...given, plan };
  const doubled = key === given.plan.primaryKey ? [] : await takeOutDuplicates(link, shadow, plan);
  const same = key.map((name) => `s.${ident(name)} = t.${ident(name)}`).join(" AND ");
  const exists = `EXISTS (SELECT FROM ${shadow} s WHERE ${same})`;
  const mark = ident(DELETED_AT);
  try {
    // Rows that others refer to are updated: deleting them would fail, or take the others with them. What has gone and is marked stays.
    if (plan.deletes === "soft") {
      if (!referenced) await link.run(`DELETE FROM ${table} t WHERE ${exists}`);
      await link.run(`UPDATE ${table} t SET ${mark} = now() WHERE ${mark} IS NULL AND NOT ${exists}`);
    } else await link.run(`DELETE FROM ${table}${referenced ? ` t WHERE NOT ${exists}` : ""}`);
  } catch (error) {
    throw stillReferred(error);
  }
  const put = await putter(referenced ? target : { ...target, plan: { ...plan, primaryKey: [] } });
  let rejects = [...doubled, ...(await takeOutMiscomputed(target, shadow))];
  await link.run("SAVEPOINT magic_exchange");
  try {
    await put(shadow);
  } catch (error) {
    if (!canSift(error, plan)) throw error;
    await link.run("ROLLBACK TO SAVEPOINT magic_exchange; RELEASE SAVEPOINT magic_exchange");
    const waiting = (what: string) => target.waiting(what);
    const rows = `SELECT * FROM ${shadow}`;
    rejects = [...rejects, ...(await sift({ link, plan, rows, put, updates: referenced, waiting }))];
  }
  await link.run(`DROP TABLE ${shadow}`);
  return rejects;
}
