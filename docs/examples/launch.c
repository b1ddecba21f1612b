/* SPDX-License-Identifier: MIT */
/* Launch a program, wait for its end, print its ten hottest functions: launch PROGRAM [ARG...] */
#include <hotfn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    hotfn_launch_options o = { .size = sizeof o, .command = (const char **)argv + (argc > 0) };
    hotfn_record_info info = HOTFN_RECORD_INFO_INIT;
    hotfn_record_function f = HOTFN_RECORD_FUNCTION_INIT;
    hotfn_launch *l = NULL;
    hotfn_record *r = NULL;
    int failed = hotfn_launch_start(&l, &o, NULL, NULL) || hotfn_launch_wait(l, UINT64_MAX, NULL) ||
                 hotfn_launch_open_record(&r, l, NULL) || hotfn_record_get_info(r, &info);
    uint32_t *order = calloc(info.function_count + 1, sizeof *order);
    failed = failed || hotfn_record_sort(r, HOTFN_BY_CALLS, order);
    for (uint32_t i = 0; !failed && i < 10 && i < info.function_count; i++) {
        char name[256];
        hotfn_record_get_function(r, order[i], &f);
        hotfn_record_get_display_name(r, order[i], name, sizeof name);
        printf("%12llu  %s\n", (unsigned long long)f.calls, name);
    }
    free(order);
    hotfn_record_close(r);
    hotfn_launch_destroy(l);
    return failed;
}
