/* SPDX-License-Identifier: MIT */
/* Launch a program, wait for its end, print its ten hottest functions: launch PROGRAM [ARG...] */
#include <hotfn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    hotfn_launch_options o = { .size = sizeof o, .command = (const char **)argv + (argc > 0) };
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_launch *l = NULL;
    hotfn_record *r = NULL;
    uint32_t order[10];
    if (hotfn_launch_start(&l, &o, NULL, &err) || hotfn_launch_wait(l, UINT64_MAX, &err) ||
        hotfn_launch_open_record(&r, l, &err) || hotfn_record_sort(r, HOTFN_BY_CALLS, order, 10)) {
        fprintf(stderr, "launch: %s: %s\n", err.file, err.text);
    }
    for (uint32_t i = 0; r && i < 10 && !hotfn_record_get_function(r, order[i], &f); i++) {
        char name[256];
        hotfn_record_get_display_name(r, order[i], name, sizeof name);
        printf("%12llu  %s%s\n", (unsigned long long)f.calls, name, f.counted ? "" : " (not counted)");
    }
    hotfn_record_close(r);
    hotfn_launch_destroy(l);
    return err.text[0] != 0;
}
