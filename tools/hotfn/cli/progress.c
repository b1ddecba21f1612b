/* SPDX-License-Identifier: MIT */
/* The status line shows how far an operation of the library is.  It appears on a terminal after a
 * second, and is erased when the operation ends. */
#include "progress.h"

#include "listing.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_BYTES = 80, FILE_BYTES = 32 };
#define DELAY_NS 1000000000
#define INTERVAL_NS 100000000

static struct {
    atomic_flag is_used; /* a lock: a launch reports from threads of its own */
    int64_t begin_ns, reported_ns, shown_ns;
    int width; /* of the line that the terminal shows; 0: none */
} line = { .is_used = ATOMIC_FLAG_INIT };

/* Replace the line with a text; "" erases the line. */
static void put_line(const char *text)
{
    int bytes = (int)strlen(text), before = line.width;

    if (bytes + before > 0) {
        fprintf(stderr, "\r%s%*s%s", text, before > bytes ? before - bytes : 0, "",
                bytes ? "" : "\r");
        fflush(stderr);
        line.width = bytes;
    }
}

/* A long file name is shortened at its beginning, because its end has the version. */
static void show_line(const hotfn_progress *p)
{
    char text[LINE_BYTES], done[32], total[32];
    const char *slash = strrchr(p->file, '/'), *file = slash ? slash + 1 : p->file;
    size_t bytes = strlen(file);
    bool is_cut = bytes > FILE_BYTES;

    snprintf(text, sizeof text, "hotfn: %s %s%s: %s of %s (%d %%)", p->action, is_cut ? "..." : "",
             is_cut ? file + bytes - FILE_BYTES : file, listing_grouped(p->done, done),
             listing_grouped(p->total, total), (int)(100.0 * (double)p->done / (double)p->total));
    put_line(text);
}

void progress_report(const hotfn_progress *p)
{
    int64_t now = progress_read_clock();

    if (!isatty(STDERR_FILENO)) {
        return;
    }
    while (atomic_flag_test_and_set(&line.is_used)) { /* another thread writes the line */
        ;
    }
    if (now - line.reported_ns > DELAY_NS) {
        line.begin_ns = now; /* the previous report was that of an earlier operation */
    }
    line.reported_ns = now;
    if (p->done == p->total) {
        put_line("");
    } else if (now - line.begin_ns > DELAY_NS && now - line.shown_ns > INTERVAL_NS) {
        show_line(p);
        line.shown_ns = now;
    }
    atomic_flag_clear(&line.is_used);
}

static void report_for_env(void *user, const hotfn_progress *p)
{
    (void)user;
    progress_report(p);
}

void progress_set_env(hotfn_env *env)
{
    if (isatty(STDERR_FILENO)) {
        env->progress_fn = report_for_env;
    }
}
