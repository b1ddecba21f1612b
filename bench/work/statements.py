# SPDX-License-Identifier: MIT
"""Writes SQL statements for the sqlite3 shell, which fill, query, change and empty an indexed table `scale` times."""


def one_round():
    yield "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL);"
    yield "CREATE INDEX item_name ON item(name);"
    for i in range(1, 2001):
        yield f"INSERT INTO item VALUES({i}, 'item {i * 7919 % 5003}', {i % 97}.25);"
    for i in range(1, 41):
        yield f"SELECT count(*), avg(price) FROM item WHERE name LIKE 'item {i}%';"
    for i in range(1, 501):
        yield f"UPDATE item SET price = price * 1.1 WHERE id = {i * 3};"
    for i in range(1, 501):
        yield f"SELECT name, price FROM item WHERE name = 'item {i * 31 % 5003}' ORDER BY price LIMIT 3;"
    yield ("SELECT a.name, b.name FROM item a JOIN item b ON a.id = b.id + 1 "
           "ORDER BY b.price LIMIT 9;")
    yield "DELETE FROM item WHERE id % 2;"
    yield "DROP TABLE item;"


def statements(scale):
    for _ in range(scale):
        yield from one_round()


def write(path, scale):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(statements(scale)) + "\n")
    return path
