/* SPDX-License-Identifier: MIT */
/* What can be hooked in a file, by the pipeline's parts in order: image, symbols, functions,
 * verdicts. No process is started, and the file may be for any machine.
 *
 *     cc scan_file.c $(pkg-config --cflags --libs hotfn) -o scan_file
 *     ./scan_file /usr/bin/git
 */
#include <hotfn.h>
#include <hotfn/lowlevel.h>

#include <stdio.h>

typedef struct walk {
    hotfn_image *image;
    hotfn_symbols *symbols;
    hotfn_functions *functions;
    hotfn_verdicts *verdicts;
} walk;

static hotfn_status walk_file(walk *w, const char *path, hotfn_error *err)
{
    hotfn_status status = hotfn_image_open(&w->image, path, NULL, err);
    if (status == HOTFN_OK) {
        status = hotfn_symbols_load(&w->symbols, w->image, NULL, NULL, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_functions_build(&w->functions, w->image, w->symbols, NULL, err);
    }
    if (status == HOTFN_OK) {
        status = hotfn_verdicts_create(&w->verdicts, w->image, w->functions, NULL, NULL, err);
    }
    return status;
}

/* In reverse order, because each object uses the one before it. */
static void walk_end(walk *w)
{
    hotfn_verdicts_destroy(w->verdicts);
    hotfn_functions_destroy(w->functions);
    hotfn_symbols_destroy(w->symbols);
    hotfn_image_close(w->image);
}

/* Prints a line for each function that cannot be hooked, and the totals. */
static void print_verdicts(const walk *w)
{
    uint32_t counts[4] = { 0 };
    for (uint32_t i = 0; i < hotfn_verdicts_get_count(w->verdicts); i++) {
        hotfn_function f = HOTFN_FUNCTION_INIT;
        hotfn_verdict v = HOTFN_VERDICT_INIT;
        hotfn_functions_get(w->functions, i, &f);
        hotfn_verdicts_get(w->verdicts, i, &v);
        counts[v.verdict]++;
        if (v.verdict == HOTFN_VERDICT_REFUSED) {
            printf("%#10llx  %s: %s (byte %u)\n", (unsigned long long)f.rva, f.name,
                   hotfn_reason_get_text(v.reason), v.offset);
        }
    }
    printf("%u functions: %u hookable, %u refused, %u fragments\n",
           hotfn_verdicts_get_count(w->verdicts), counts[HOTFN_VERDICT_HOOKABLE],
           counts[HOTFN_VERDICT_REFUSED], counts[HOTFN_VERDICT_FRAGMENT]);
}

int main(int argc, char **argv)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    walk w = { NULL, NULL, NULL, NULL };
    if (argc != 2) {
        fprintf(stderr, "usage: scan_file FILE\n");
        return 2;
    }
    hotfn_status status = walk_file(&w, argv[1], &err);
    if (status == HOTFN_OK) {
        print_verdicts(&w);
    } else {
        fprintf(stderr, "scan_file: %s: %s\n", err.file, err.text);
    }
    walk_end(&w);
    return status == HOTFN_OK ? 0 : 1;
}
