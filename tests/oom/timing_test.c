/* SPDX-License-Identifier: MIT */
/* The n-th allocation fails, for every n, while functions are proven safe for timing: the
 * analysis completes its work or returns HOTFN_E_NO_MEMORY, frees what it allocated, and reports
 * no function as proven that is not. */
#include "base/counting_env.h"
#include "check.h"
#include "verdicts/scene.h"

enum { JUMPS = 300, FUNCTIONS = 40 };

/* Many jump targets, so that the proof's table grows; then ud2. */
static void add_jumper(scene *s)
{
    uint64_t at = scene_here(s);

    for (int i = 0; i < JUMPS; i++) {
        SCENE_CODE(s, "\x74\x00"); /* je to the next one */
    }
    SCENE_CODE(s, "\x48\x89\xF8\x90\xC3");
    scene_symbol(s, "jumper", at, scene_here(s) - at, FUNC);
    scene_pointer(s, RODATA + 0x80, at);
}

/* A tail jump to the previous function, and a call with a landing pad that reads the caller's
 * frame. */
static void add_caller(scene *s, uint64_t before, bool with_pad)
{
    uint64_t at = SCENE_CODE(s, "\x53\x48\x89\xF8\x90"); /* push rbx; mov rax, rdi; nop */

    scene_branch(s, 0xE8, before);
    SCENE_CODE(s, "\x5B\xC3\x48\x8D\x44\x24\x10\x5B\xC3");
    scene_symbol(s, "caller", at, scene_here(s) - at, FUNC);
    scene_pointer(s, RODATA + 0x88, at);
    if (with_pad) {
        s->fdes[s->fde_count++] = (scene_fde){ .begin = at, .size = 19, .lsda = true };
    }
    at = SCENE_CODE(s, "\x31\xC0\x0F\x1F\x00");
    scene_branch(s, 0xE9, before);
    scene_symbol(s, "jumps_on", at, 10, FUNC);
    scene_pointer(s, RODATA + 0x90, at);
}

static scene make(void)
{
    static const uint8_t lsda[] = { 0xFF, 0xFF, 0x01, 4, 5, 5, 12, 0 };
    scene s = scene_begin();
    uint64_t leaf = SCENE_FUNCTION(&s, "leaf", "\x55\x48\x89\xE5\x5D\xC3");

    scene_pointer(&s, RODATA + 0x98, leaf);
    add_jumper(&s);
    for (int i = 0; i < FUNCTIONS; i++) {
        add_caller(&s, leaf, i < 4);
    }
    memcpy(s.rodata, lsda, sizeof lsda);
    scene_build(&s);
    return s;
}

static uint32_t count_timed(const hotfn_verdicts *v)
{
    uint32_t timed = 0;

    for (uint32_t i = 0; i < hotfn_verdicts_get_count(v); i++) {
        timed += (hfn_verdicts_at(v, i)->pub.flags & HOTFN_VERDICT_TIMED) != 0;
    }
    return timed;
}

/* The number of proven functions, UINT32_MAX if there was no memory for it. */
static uint32_t judge(const scene *s, counting *c)
{
    hotfn_verdicts_options options = HOTFN_VERDICTS_OPTIONS_INIT;
    hotfn_env env = counting_env(c);
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_verdicts *verdicts = NULL;
    hotfn_status status;
    uint32_t timed;

    options.flags = HOTFN_VERDICTS_TIMING;
    options.threads = 1;
    status = hotfn_verdicts_create(&verdicts, s->image, s->functions, &options, &env, &err);
    CHECK(status == HOTFN_OK || status == HOTFN_E_NO_MEMORY);
    CHECK((verdicts != NULL) == (status == HOTFN_OK));
    timed = status == HOTFN_OK ? count_timed(verdicts) : UINT32_MAX;
    hotfn_verdicts_destroy(verdicts);
    return timed;
}

static void fail_each_allocation(bool once)
{
    scene s = make();
    counting c;
    uint32_t all, timed = UINT32_MAX;
    size_t requests = SIZE_MAX;

    memset(&c, 0, sizeof c);
    all = judge(&s, &c);
    CHECK(all >= FUNCTIONS + 2 && all <= 2 * FUNCTIONS + 2 - 4);
    for (size_t n = 1; requests >= n - 1; n++) {
        memset(&c, 0, sizeof c);
        c.fail_at = n;
        c.fail_once = once;
        timed = judge(&s, &c);
        requests = c.requests;
        if (!CHECK(timed == all || timed == UINT32_MAX) || !CHECK_EQ_U64(c.live_bytes, 0) ||
            !CHECK_EQ_I64(c.size_mismatches, 0)) {
            printf("#   where request %zu failed\n", n);
            break;
        }
    }
    CHECK_EQ_U64(timed, all);
    CHECK(requests > 20);
    scene_finish(&s);
}

static void proofs_survive_every_failure(void)
{
    fail_each_allocation(false);
}

static void proofs_survive_each_single_failure(void)
{
    fail_each_allocation(true);
}

static const check_test tests[] = {
    CHECK_TEST(proofs_survive_every_failure),
    CHECK_TEST(proofs_survive_each_single_failure),
};
CHECK_MAIN(tests)
