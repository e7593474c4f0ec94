// What neither LIKE nor the definitions of indexes and constraints bring of a table whose place another one takes: its statistics, how
// finely its columns are sampled, the options of its TOAST table and of its keys' indexes, comments on both, what it is clustered by, and
// who may use the sequences of its identity columns.
import type { PostgresLink } from "./connect.ts";

/** Statements that give all of it to the new table, once that has every name of the old one. */
export async function belongings(link: PostgresLink, old: string): Promise<string[]> {
  const rows = await link.rows<{ sql: string }>(
    `WITH t AS (SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::oid),
          x AS (SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name, i.indisclustered, EXISTS (SELECT FROM pg_constraint WHERE conindid = c.oid AND conrelid = i.indrelid AND contype IN ('p', 'u', 'x')) AS of_key
                  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace WHERE i.indrelid = $1::oid),
          q AS (SELECT c.*, format('%I.%I', n.nspname, c.relname) AS name FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND c.relkind = 'S' JOIN pg_namespace n ON n.oid = c.relnamespace
                 WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.refobjid = $1::oid AND d.deptype = 'i'),
          s AS (SELECT e.*, format('%I.%I', n.nspname, e.stxname) AS name, to_jsonb(e) ->> 'stxstattarget' AS target FROM pg_statistic_ext e JOIN pg_namespace n ON n.oid = e.stxnamespace WHERE e.stxrelid = $1::oid)
     SELECT format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', t.name, attname, attstattarget) AS sql FROM t JOIN pg_attribute a ON attrelid = t.oid WHERE attnum > 0 AND NOT attisdropped AND attstattarget >= 0
     UNION ALL SELECT format('ALTER TABLE %s ALTER COLUMN %I SET (%s)', t.name, attname, ${options("attoptions", "")}) FROM t JOIN pg_attribute a ON attrelid = t.oid WHERE attnum > 0 AND NOT attisdropped AND attoptions IS NOT NULL
     UNION ALL SELECT format('ALTER TABLE %s SET (%s)', t.name, ${options("o.reloptions", "toast.")}) FROM t JOIN pg_class o ON o.oid = t.reltoastrelid WHERE o.reloptions IS NOT NULL
     UNION ALL SELECT format('ALTER INDEX %s SET (%s)', name, ${options("reloptions", "")}) FROM x WHERE of_key AND reloptions IS NOT NULL
     UNION ALL SELECT format('ALTER INDEX %s ALTER COLUMN %s SET STATISTICS %s', name, attnum, attstattarget) FROM x JOIN pg_attribute a ON attrelid = x.oid AND attstattarget >= 0
     UNION ALL SELECT format('ALTER TABLE %s CLUSTER ON %I', t.name, x.relname) FROM t, x WHERE indisclustered
     UNION ALL SELECT format('COMMENT ON INDEX %s IS %L', name, description) FROM x JOIN pg_description ON objoid = x.oid AND classoid = 'pg_class'::regclass
     UNION ALL SELECT format('COMMENT ON CONSTRAINT %I ON %s IS %L', conname, t.name, description) FROM t JOIN pg_constraint k ON conrelid = t.oid AND contype IN ('p', 'u', 'x', 'f') JOIN pg_description ON objoid = k.oid AND classoid = 'pg_constraint'::regclass
     UNION ALL SELECT format('COMMENT ON SEQUENCE %s IS %L', name, description) FROM q JOIN pg_description ON objoid = q.oid AND classoid = 'pg_class'::regclass
     UNION ALL SELECT format('GRANT %s ON SEQUENCE %s TO %s%s', privilege_type, name, CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END, CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END) FROM q CROSS JOIN LATERAL aclexplode(relacl) WHERE grantee <> relowner
     UNION ALL SELECT pg_get_statisticsobjdef(oid) FROM s
     UNION ALL SELECT format('ALTER STATISTICS %s SET STATISTICS %s', name, target) FROM s WHERE target::int >= 0
     UNION ALL SELECT format('COMMENT ON STATISTICS %s IS %L', name, description) FROM s JOIN pg_description ON objoid = s.oid AND classoid = 'pg_statistic_ext'::regclass`,
    [old],
  );
  return rows.map(({ sql }) => sql);
}

const options = (array: string, prefix: string) =>
  `(SELECT string_agg(format('${prefix}%s=%L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)), ', ') FROM unnest(${array}) o)`;
