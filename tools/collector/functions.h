/* SPDX-License-Identifier: MIT */
/* The functions of a build with their names, for replies.  Names are untrusted text. */
#ifndef HOTFN_COLLECTOR_FUNCTIONS_H
#define HOTFN_COLLECTOR_FUNCTIONS_H

#include "buffer.h"
#include "store.h"

typedef struct function_list {
    uint32_t count, module_count;
    uint64_t *rvas, *byte_counts;
    uint32_t *modules;
    size_t *names; /* offsets in texts; SIZE_MAX: no name */
    size_t *files; /* by module: offsets in texts */
    byte_buffer texts;
} function_list;

bool load_functions(store *s, int64_t build, uint32_t count, function_list *out, refusal *why);
void free_functions(function_list *f);
/* The name to show: "file+0x1234" if the function has none (then in buffer). */
const char *get_function_name(const function_list *f, uint32_t number, char *buffer, size_t bytes);
const char *get_function_file(const function_list *f, uint32_t number);
/* Whether each word of a search is in the name or in the file, ignoring the case of ASCII. */
bool function_matches(const function_list *f, uint32_t number, const char *words);

/* Pair the functions of two builds by file and name; functions with the same name are paired in
 * order.  out[number in b] is the number in a, or UINT32_MAX.  False if there is no memory. */
bool pair_functions(const function_list *a, const function_list *b, uint32_t *out);

#endif
