/* SPDX-License-Identifier: MIT */
/* What `hotfn run` says at the end: one line on stderr, and of each glob that matched nothing another. */
#include "cli/cli_options.h"
#include "run.h"

#include <stdio.h>
#include <string.h>

typedef struct tally {
    uint32_t hooked, refused, fragments, left_out, failed;
    char names[200]; /* of those left out, as many as it has room for */
    bool more;
} tally;

static void name_left_out(tally *t, const char *name)
{
    size_t used = strlen(t->names), room = sizeof t->names - sizeof ", ..." - used;
    t->more |= strlen(name) + 2 > room;
    if (!t->more) {
        snprintf(t->names + used, room + 1, "%s%s", used ? ", " : "", name);
    }
    t->left_out++;
}

static void tally_modules(const hotfn_record *record, uint32_t count, tally *t)
{
    for (uint32_t i = 0; i < count; i++) {
        hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
        hotfn_record_get_module(record, i, &m);
        t->failed += (m.flags & HOTFN_MODULE_FAILED) != 0;
        if (m.flags & HOTFN_MODULE_LEFT_OUT) {
            name_left_out(t, m.file);
        }
    }
}

static void count_up(const hotfn_record *record, tally *t)
{
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_get_info(record, &info);
    for (uint32_t i = 0; i < info.function_count; i++) {
        hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
        hotfn_record_get_function(record, i, &f);
        t->hooked += f.state == HOTFN_STATE_HOOKED;
        t->refused += f.state == HOTFN_STATE_REFUSED;
        t->fragments += f.state == HOTFN_STATE_FRAGMENT;
    }
    tally_modules(record, info.module_count, t);
}

static void warn_unmatched(const run_service *s)
{
    for (uint32_t i = 0; i < s->options->include.count; i++) {
        if (!s->include_used[i]) {
            fprintf(stderr, "hotfn run: -f '%s' matches no function\n",
                    s->options->include.items[i]);
        }
    }
    for (uint32_t i = 0; i < s->options->modules.count; i++) {
        if (!s->modules_used[i]) {
            fprintf(stderr, "hotfn run: --module '%s' matches no module that was loaded\n",
                    s->options->modules.items[i]);
        }
    }
}

void run_summarise(const run_service *s, const hotfn_record *record, double seconds)
{
    tally t = { 0 };
    hotfn_commit_stats stats = HOTFN_COMMIT_STATS_INIT;
    if (hotfn_handover_get_stats(s->handover, &stats) != HOTFN_OK) {
        fprintf(stderr, "hotfn: nothing was counted: the target %s\n",
                s->options->target_glob ? "never started (does --target match its file?)"
                                        : "did not let the agent in");
        return;
    }
    if (record) {
        count_up(record, &t);
    }
    fprintf(stderr, "hotfn: %u function%s hooked, %u refused, %u fragment%s", t.hooked,
            words_s(t.hooked), t.refused, t.fragments, words_s(t.fragments));
    if (t.left_out) {
        fprintf(stderr, "; %u module%s left out (%s%s)", t.left_out, words_s(t.left_out), t.names,
                t.more ? (t.names[0] ? ", ..." : "...") : "");
    }
    if (t.failed) {
        fprintf(stderr, "; %u module%s failed (hotfn info %s)", t.failed, words_s(t.failed),
                s->options->record_path);
    }
    fprintf(stderr, "; hooked in %.3f s, ran %.3f s; record %s\n", (double)stats.total_ns / 1e9,
            seconds, s->options->record_path);
    warn_unmatched(s);
}
