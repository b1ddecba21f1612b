/* SPDX-License-Identifier: MIT */
/* Unpatching and repatching the bytes of a hook on AArch64, and refusing to do so if the bytes are
 * not those of the hook. qemu-user has no ptrace, so this process patches its own memory instead of
 * that of another process; no patched code is run. */
#include "launch/budget/budget.h"

#include "base/memory.h"
#include "plan/plan_write.h"

#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 3, FUNCTIONS = 3 };
/* nop; mov w0, w1; ret */
static const uint32_t code[] = { 0xd503201f, 0x2a0103e0, 0xd65f03c0 };
static const uint32_t breakpoint = 0xd4200000; /* brk #0 */
static const uint32_t rvas[FUNCTIONS] = { PAGE, 2 * PAGE - 4, 2 * PAGE + 64 };
/* Stubs before and behind the plan's code. */
static const uint32_t stub_rvas[FUNCTIONS] = { 0, 3 * PAGE - 64, 128 };

static uint8_t *memory;
static hotfn_plan *plan;
static hotfn_env env;
static hfn_remote remote;
static hfn_target_pages pages = { .remote = &remote };
static hfn_patched_module module;

static void put_word(uint32_t rva, uint32_t word)
{
    memcpy(memory + rva, &word, sizeof word);
}

static uint32_t word_at(uint32_t rva)
{
    uint32_t word;

    memcpy(&word, memory + rva, sizeof word);
    return word;
}

static uint32_t branch(uint32_t from, uint32_t to)
{
    return 0x14000000 | (((to - from) >> 2) & 0x3ffffff);
}

static void add_to_plan(hfn_plan_writer *writer, uint32_t index)
{
    hfn_moved moved;
    uint32_t offset = 0;
    hfn_plan_new_entry source = { .function_index = index,
                                  .rva = rvas[index],
                                  .strategy = HOTFN_STRATEGY_JUMP,
                                  .patch_bytes = sizeof *code,
                                  .original = memory + rvas[index],
                                  .moved = &moved };

    CHECK(hfn_arch_arm64.move(memory + rvas[index], sizeof code, rvas[index], sizeof *code,
                              HFN_NO_REGISTER, &moved, &offset) == HFN_MOVED);
    source.original_bytes = moved.original_bytes;
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
}

/* Three hooked functions; the first word of the second is the last word of its page. */
static void begin(void)
{
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, HOTFN_MACHINE_ARM64, FUNCTIONS);

    memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 0x5a, PAGES * PAGE); /* a fill for the stubs */
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        memcpy(memory + rvas[i], code, sizeof code);
    }
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        add_to_plan(writer, i);
    }
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        put_word(rvas[i], branch(rvas[i], stub_rvas[i]));
    }
    env = hfn_env_fill(NULL);
    module = (hfn_patched_module){ .plan = plan, .base = (uint64_t)(uintptr_t)memory };
    remote = (hfn_remote){ .env = env, .pid = (uint32_t)getpid(), .memory = -1 };
    CHECK_EQ_I64(hfn_os_remote_open(&remote), 0);
}

static void end(void)
{
    hfn_os_remote_close(&remote);
    hotfn_plan_destroy(plan);
    munmap(memory, PAGES * PAGE);
}

static hfn_unpatch_record *create_record(uint32_t entry)
{
    hfn_unpatch_record *record = hfn_unpatch_create_record(&module, entry, &pages, &env);

    hfn_target_pages_write_back(&pages);
    return record;
}

static bool unpatch(const hfn_unpatch_record *record)
{
    bool done = hfn_unpatch_function(record, &pages);

    hfn_target_pages_write_back(&pages);
    return done;
}

static bool repatch(const hfn_unpatch_record *record)
{
    bool done = hfn_repatch_function(record, &pages);

    hfn_target_pages_write_back(&pages);
    return done;
}

static void unpatching_and_repatching_restore_each_byte(void)
{
    begin();
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        hfn_unpatch_record *record = create_record(i);
        hfn_remote_range range;
        if (!CHECK(record != NULL)) {
            break;
        }
        CHECK_EQ_U64(record->stub, (uint64_t)(uintptr_t)memory + stub_rvas[i]);
        /* No thread can be inside a hook of one instruction. */
        CHECK_EQ_U64(hfn_unpatch_get_range(record, &range), 0);
        CHECK(unpatch(record));
        CHECK(memcmp(memory + rvas[i], code, sizeof code) == 0);
        CHECK(!unpatch(record)); /* already unpatched */
        CHECK(repatch(record));
        CHECK_EQ_U64(word_at(rvas[i]), branch(rvas[i], stub_rvas[i]));
        CHECK(memcmp(memory + rvas[i] + 4, code + 1, sizeof code - 4) == 0);
        CHECK(!repatch(record)); /* already patched */
        hfn_unpatch_free_record(record, &env);
    }
    end();
}

static void an_entry_without_a_branch_is_not_a_hook(void)
{
    begin();
    put_word(rvas[0], code[0]); /* unhooked */
    put_word(rvas[1], breakpoint);
    CHECK(create_record(0) == NULL);
    CHECK(create_record(1) == NULL);
    end();
}

static void bytes_changed_by_other_code_are_not_restored(void)
{
    hfn_unpatch_record *record;

    begin();
    record = create_record(0);
    if (CHECK(record != NULL)) {
        put_word(rvas[0], breakpoint); /* as a debugger writes */
        CHECK(!unpatch(record));
        CHECK_EQ_U64(word_at(rvas[0]), breakpoint);
        put_word(rvas[0], branch(rvas[0], stub_rvas[0]));
        CHECK(unpatch(record));
        put_word(stub_rvas[0], breakpoint); /* the stub's memory was reused */
        CHECK(!repatch(record));
        CHECK_EQ_U64(word_at(rvas[0]), code[0]);
        put_word(stub_rvas[0], 0x5a5a5a5a);
        CHECK(repatch(record));
        hfn_unpatch_free_record(record, &env);
    }
    end();
}

/* The launcher's probe runs stubs of this CPU. */
static void the_cost_of_a_hook_is_measured(void)
{
    double counted = hfn_budget_measure(false), passed = hfn_budget_measure(true);

    CHECK(counted >= 0 && passed >= 0);
    CHECK(hfn_os_can_change_others());
}

static const check_test tests[] = {
    CHECK_TEST(unpatching_and_repatching_restore_each_byte),
    CHECK_TEST(an_entry_without_a_branch_is_not_a_hook),
    CHECK_TEST(bytes_changed_by_other_code_are_not_restored),
    CHECK_TEST(the_cost_of_a_hook_is_measured),
};
CHECK_MAIN(tests)
