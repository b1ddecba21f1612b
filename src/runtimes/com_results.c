/* SPDX-License-Identifier: MIT */
#include "runtimes/com_results.h"

#include "arch/method_pool.h"

#include "os/memory.h"

#include <hotfn/lowlevel/counters.h>
#include <stdio.h>
#include <string.h>

/* Failures of one method that have functions of their own.  The results of a method of an unknown
 * type may be any numbers. */
enum { MAX_FAILURES = 16 };

typedef void returned_fn(uint32_t function, int32_t result, void *const *arguments);

typedef struct method_outputs {
    hfn_com_output all[HFN_COM_MAX_OUTPUTS];
    hfn_guid class;
} method_outputs;

static struct {
    hfn_methods methods;
    uint8_t results[HFN_POOL_FUNCTIONS];  /* hfn_com_result */
    uint8_t failures[HFN_POOL_FUNCTIONS]; /* atomic; different ones so far */
    hfn_com_output_fn *output;
    uint8_t *has_outputs;    /* of the pool, by function */
    method_outputs *outputs; /* by function */
} state;

/* The pool takes a result below 0 for a failure. */
static int32_t return_success(void)
{
    return 0;
}

/* HRESULT: bit 31 is set in failures, bits 30, 28 and 27 are reserved ([MS-ERREF], 2.1). */
static bool is_failure(hfn_com_result type, int32_t result)
{
    return type == HFN_COM_HRESULT ||
           (type == HFN_COM_UNKNOWN_RESULT && ((uint32_t)result & UINT32_C(0x58000000)) == 0);
}

static hotfn_code get_failure(const char *method, uint32_t function, int32_t result)
{
    uint8_t *count = &state.failures[function];
    char name[300];
    hotfn_code found;
    bool is_new = false;

    if (__atomic_load_n(count, __ATOMIC_RELAXED) < MAX_FAILURES) {
        snprintf(name, sizeof name, "%.250s failed: 0x%08x", method, (unsigned)result);
        found = hfn_methods_get_framed(&state.methods, name, (hotfn_code)return_success, &is_new);
        if (is_new) {
            __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
        }
        return found;
    }
    snprintf(name, sizeof name, "%.250s failed: other results", method);
    return hfn_methods_get_framed(&state.methods, name, (hotfn_code)return_success, &is_new);
}

static void count_failure(uint32_t function, int32_t result)
{
    void *paused = hotfn_counters_pause();
    hotfn_code event = NULL;

    if (is_failure((hfn_com_result)state.results[function], result)) {
        const char *name =
            hfn_live_get_function_name(state.methods.live, state.methods.module, function);

        event = name ? get_failure(name, function, result) : NULL;
    }
    hotfn_counters_resume(paused);
    if (event) {
        event();
    }
}

/* A method that returns S_OK has set the places for interfaces, if only to NULL. */
static void report_outputs(uint32_t function, void *const *arguments)
{
    const method_outputs *outputs = &state.outputs[function];

    for (uint32_t i = 0; i < HFN_COM_MAX_OUTPUTS && outputs->all[i].argument > 0; i++) {
        void *const *place = arguments[outputs->all[i].argument];

        if (place && *place) {
            state.output(arguments[0], &outputs->class, *place, &outputs->all[i].iid);
        }
    }
}

/* Called by the pool's function, in its frame. */
static void read_result(uint32_t function, int32_t result, void *const *arguments)
{
    if (result < 0) {
        count_failure(function, result);
    } else if (result == 0 && state.has_outputs[function]) {
        report_outputs(function, arguments);
    }
}

void hfn_com_open_results(const hfn_methods *methods, hfn_find_symbol_fn *find_symbol,
                          uint64_t base, hfn_com_output_fn *output)
{
    returned_fn **returned = find_symbol(base, HFN_POOL_RETURNED_NAME);

    state.methods = *methods;
    state.output = output;
    state.has_outputs = find_symbol(base, HFN_POOL_OUTPUTS_NAME);
    state.outputs = hfn_os_map_pages((uint64_t)HFN_POOL_FUNCTIONS * sizeof *state.outputs);
    if (returned) {
        *returned = read_result;
    }
}

void hfn_com_set_result(const hfn_methods *methods, hotfn_code function,
                        const hfn_com_method *method, const hfn_guid *class)
{
    uint32_t index = hfn_methods_get_index(methods, function) % HFN_POOL_FUNCTIONS;

    state.results[index] = (uint8_t)method->result;
    if (state.has_outputs && state.outputs && method->outputs[0].argument > 0 &&
        method->result == HFN_COM_HRESULT) {
        memcpy(state.outputs[index].all, method->outputs, sizeof method->outputs);
        state.outputs[index].class = *class;
        state.has_outputs[index] = 1;
    }
}

void hfn_com_count_event(const hfn_methods *methods, const char *name)
{
    void *paused = hotfn_counters_pause();
    hotfn_code function = hfn_methods_get_numbered(methods, name, (hotfn_code)return_success, true);

    hotfn_counters_resume(paused);
    if (function) {
        function();
    }
}
