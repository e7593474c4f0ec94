// Every PostgreSQL type at its extremes: one table that every round trip must bring back as it was.
export const extremes = `
CREATE TYPE mood AS ENUM ('sad', 'ok', 'h,a"p\\py');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE TABLE extremes (
  id bigint PRIMARY KEY, i2 smallint, i4 integer, i8 bigint, n numeric, n38 numeric(38,10), n60 numeric(60,0), r real, d double precision, b boolean,
  t text, v varchar(20), c char(6), raw bytea, u uuid, j json, jb jsonb, day date, tm time, tmz timetz, ts timestamp, tsz timestamptz, ts3 timestamp(3),
  iv interval, ip inet, net cidr, mac macaddr, bits bit(5), vbits varbit(12), m mood, p positive, texts text[], ints bigint[], matrix integer[][], moods mood[],
  rng int4range, tsr tstzrange, pt point, x xml, money money, vec tsvector, "Quoted ""name""" text);
INSERT INTO extremes VALUES
 (1, -32768, -2147483648, -9223372036854775808, 'NaN', -1234567890123456789012345678.0123456789, 999999999999999999999999999999999999999999999999999999999999, '-3.4028235e38', '-1.7976931348623157e308', true,
  E'tab\\t nl\\n cr\\r back\\\\slash \\\\N quote" '' é 😀', 'varchar', 'ab', '\\x00ff0a0d5c2209', '00000000-0000-0000-0000-000000000000', '{"b": 1,  "a": 12345678901234567890.12345678901234567890}', '{"b": 1, "a": 12345678901234567890.12345678901234567890, "n": null}',
  '4713-01-01 BC', '00:00:00.000001', '23:59:59.999999+14:59', '4713-01-01 00:00:00 BC', '294276-12-31 23:59:59.999999+00', '2020-01-01 00:00:00.123',
  '-178000000 years 5 mons -3 days +04:05:06.789012', '255.255.255.255/31', '::/0', 'ff:ff:ff:ff:ff:ff', B'00101', B'', 'h,a"p\\py', 2147483647, ARRAY['a', NULL, 'NULL', '', 'x,y "z" \\ {}'], ARRAY[9223372036854775807, NULL, -1], '{{1,2},{3,4}}', ARRAY['sad','h,a"p\\py']::mood[],
  '[1,10)', '["2020-01-01 00:00:00.000001+00",infinity)', '(1.5,-2.25)', '<a b="1">x</a>', -92233720368547758.08, 'fat:2A rat:3', 'q'),
 (9223372036854775807, 32767, 2147483647, 9223372036854775807, '-0.00000000000000000000000000000000000000000000000001', 0.0000000001, 0, '1e-45', '5e-324', false,
  '', '', '', '', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '"\\u0041"', '[]', 'infinity', '24:00:00', '00:00:00-14:59', 'infinity', '-infinity', '-infinity',
  '0', '::1', '10.0.0.0/8', '00:00:00:00:00:00', B'11111', B'101010101010', 'ok', 1, '{}', '{}', '{}', '{}', 'empty', '(,)', '(0,0)', '', 0, '', ''),
 (0, 0, 0, 0, '12345678901234567890123456789012345678901234567890.000', 1.5, 7, 'NaN', 'Infinity', NULL, 'NULL', '\\N', '\\.', '\\x', NULL, 'null', 'null', '-infinity', '12:00', NULL, '0001-01-01 00:00:00', '1969-12-31 23:59:59.999999+00', '1999-12-31 23:59:59.999',
  '1 mon', NULL, NULL, NULL, NULL, NULL, 'sad', NULL, '{{a,b},{c,NULL}}', '{1}', NULL, NULL, NULL, NULL, NULL, NULL, 1.10, NULL, E'line\\nbreak'),
 (-5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
`;
