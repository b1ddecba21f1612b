/* SPDX-License-Identifier: MIT */
/* Uses libsqlite3 for the given number of seconds in threads that start and end: each creates,
 * fills, searches and drops a table. Only four calls of the public interface are needed, so
 * sqlite3's header is not. The second argument is a pause after each round, in milliseconds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef struct sqlite3 sqlite3;
int sqlite3_open(const char *name, sqlite3 **out);
int sqlite3_close(sqlite3 *db);
int sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **), void *arg,
                 char **error);

static const char *const work[] = {
    "create table t(a integer primary key, b text, c real)",
    "create index i on t(b)",
    "with recursive n(x) as (select 1 union all select x + 1 from n where x < 2000) "
    "insert into t select x, printf('%08x', x * 2654435761 % 4294967296), x / 7.0 from n",
    "select count(*), sum(c), group_concat(substr(b, 1, 2)) from t where b like '%a%' group by a % 13",
    "update t set c = c + 1 where a in (select a from t order by b limit 500)",
    "delete from t where a % 3 = 0",
    "drop table t",
};

static void *thread(void *failed)
{
    sqlite3 *db = NULL;

    *(int *)failed |= sqlite3_open(":memory:", &db);
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        *(int *)failed |= sqlite3_exec(db, work[i], NULL, NULL, NULL);
    *(int *)failed |= sqlite3_close(db);
    return NULL;
}

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? atol(argv[1]) : 1, pause_ms = argc > 2 ? atol(argv[2]) : 0;
    time_t end = time(NULL) + seconds;
    int failed[2] = { 0, 0 };

    while (time(NULL) < end) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            pthread_create(&threads[i], NULL, thread, &failed[i]);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        if (pause_ms > 0)
            usleep((useconds_t)(1000 * pause_ms));
    }
    return failed[0] | failed[1];
}
