/* SPDX-License-Identifier: MIT */
/* The files of a trial of `hotfn bisect`, and the comparison of outcomes. */
#include "run/bisect.h"

#include <stdio.h>

void bisect_make_path(const bisect_setup *s, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", s->folder, name);
}

bool bisect_print_errors(const bisect_setup *s)
{
    char path[PATH_MAX], text[1024];

    bisect_make_path(s, "errors", path);
    FILE *errors = fopen(path, "re");
    while (errors && fgets(text, sizeof text, errors)) {
        fputs(text, stderr);
    }
    if (errors) {
        fclose(errors);
    }
    return false;
}

static bool same_bytes(const char *a, const char *b)
{
    FILE *x = fopen(a, "re"), *y = fopen(b, "re");
    bool same = x && y;

    for (int c = 0, d = 0; same && c != EOF;) {
        c = getc(x);
        d = getc(y);
        same = c == d;
    }
    if (x) {
        fclose(x);
    }
    if (y) {
        fclose(y);
    }
    return same;
}

bool bisect_differs(const bisect_setup *s, const bisect_outcome *bare, const bisect_outcome *other)
{
    if (s->by == BISECT_BY_COMMAND) {
        return bisect_check_fails(s, other);
    }
    if (bare->hung != other->hung || (!bare->hung && bare->status != other->status)) {
        return true;
    }
    return s->by == BISECT_BY_OUTPUT && !same_bytes(bare->output, other->output);
}
