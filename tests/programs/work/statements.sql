-- SPDX-License-Identifier: MIT
-- A run of sqlite3 in memory with many kinds of statements; nothing in it depends on time or chance.
.bail off
.mode list
CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, born INT);
CREATE INDEX person_city ON person(city, born);
CREATE TABLE visit(person INT REFERENCES person(id), day INT, cost REAL, note TEXT);
CREATE INDEX visit_person ON visit(person);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 600)
INSERT INTO person SELECT i, printf('name %04d', (i * 7919) % 600), 'city ' || (i % 17), 1900 + i % 120 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
INSERT INTO visit SELECT 1 + (i * 31) % 600, i % 365, i * 0.37, CASE WHEN i % 5 THEN NULL ELSE hex(i) END FROM n;
SELECT city, count(*), min(born), max(name) FROM person GROUP BY city ORDER BY 2 DESC, 1;
SELECT p.city, round(sum(v.cost), 2), group_concat(DISTINCT v.day % 7) FROM person p JOIN visit v ON v.person = p.id
  GROUP BY p.city HAVING count(*) > 10 ORDER BY 1;
SELECT name FROM person WHERE id IN (SELECT person FROM visit WHERE cost > 1100) ORDER BY name LIMIT 7 OFFSET 3;
SELECT p.name, q.name FROM person p LEFT JOIN person q ON q.born = p.born AND q.id > p.id WHERE p.id < 12 ORDER BY 1, 2 LIMIT 20;
SELECT day, cost, sum(cost) OVER w, rank() OVER w, lag(cost, 2, 0) OVER w FROM visit WHERE person = 32
  WINDOW w AS (ORDER BY day ROWS BETWEEN 3 PRECEDING AND CURRENT ROW);
SELECT json_extract('{"a":[1,2,{"b":null}],"c":"x\ty"}', '$.a[2].b', '$.c'), json_array_length('[1,2,3]');
SELECT key, value, type FROM json_each('{"one":1,"two":2.5,"three":[3]}');
SELECT upper(name), lower(city), substr(name, -3), replace(name, '0', 'o'), instr(name, '4'), quote(name) FROM person WHERE id % 97 = 0;
SELECT printf('%08.3f|%-10s|%x|%e', 3.14159, 'left', 255, 12345.678), abs(-4), coalesce(NULL, 5), nullif(1, 1), typeof(x'00ff');
SELECT date('2024-02-28', '+2 days'), strftime('%j %W', '2023-12-31'), julianday('2000-01-01');
CREATE TABLE ledger(id INTEGER PRIMARY KEY, amount INT CHECK (amount <> 13));
CREATE TABLE journal(what TEXT);
CREATE TRIGGER ledger_add AFTER INSERT ON ledger BEGIN INSERT INTO journal VALUES('add ' || new.amount); END;
CREATE TRIGGER ledger_cut AFTER DELETE ON ledger BEGIN INSERT INTO journal VALUES('cut ' || old.amount); END;
BEGIN;
INSERT INTO ledger(amount) VALUES(1), (2), (3);
SAVEPOINT inner;
INSERT INTO ledger(amount) SELECT amount * 10 FROM ledger;
ROLLBACK TO inner;
DELETE FROM ledger WHERE amount = 2;
COMMIT;
INSERT INTO ledger(amount) VALUES(13);
INSERT INTO ledger(id, amount) VALUES(1, 5) ON CONFLICT(id) DO UPDATE SET amount = amount + excluded.amount;
SELECT * FROM nowhere;
SELECT what FROM journal;
SELECT * FROM ledger;
CREATE VIEW rich AS SELECT person, sum(cost) AS total FROM visit GROUP BY person HAVING total > 1000;
SELECT count(*), round(avg(total), 3) FROM rich;
WITH RECURSIVE fib(i, a, b) AS (SELECT 0, 0, 1 UNION ALL SELECT i + 1, b, a + b FROM fib WHERE i < 80)
SELECT max(a) FROM fib;
CREATE VIRTUAL TABLE pages USING fts5(title, body);
INSERT INTO pages SELECT name, city || ' born ' || born FROM person WHERE id <= 150;
SELECT count(*) FROM pages WHERE pages MATCH 'born AND 1950';
SELECT title FROM pages WHERE pages MATCH '"city 5"' ORDER BY rank, title LIMIT 5;
CREATE VIRTUAL TABLE boxes USING rtree(id, x0, x1, y0, y1);
INSERT INTO boxes SELECT id, id, id + 5, id % 50, id % 50 + 3 FROM person WHERE id <= 300;
SELECT count(*), min(id), max(id) FROM boxes WHERE x0 < 120 AND x1 > 60 AND y0 < 20;
UPDATE person SET born = born + 1 WHERE city LIKE '%1%';
DELETE FROM visit WHERE cost BETWEEN 200 AND 300 OR note GLOB '*A*';
ALTER TABLE person ADD COLUMN mood TEXT DEFAULT 'calm';
ALTER TABLE person RENAME COLUMN born TO year;
SELECT mood, count(*), sum(year) FROM person GROUP BY mood;
EXPLAIN QUERY PLAN SELECT * FROM person p, visit v WHERE v.person = p.id AND p.city = 'city 3';
SELECT name FROM person UNION SELECT city FROM person EXCEPT SELECT 'city 1' ORDER BY 1 DESC LIMIT 5;
PRAGMA integrity_check;
PRAGMA table_info(person);
REINDEX;
ANALYZE;
VACUUM;
SELECT tbl, idx FROM sqlite_stat1 ORDER BY 1, 2;
.schema ledger
.dump ledger
