/* SPDX-License-Identifier: MIT */
/* A plan contains what was written into it, and an invalid plan does not open.  If HOTFN_PLAN_SEED
 * names a folder, the plans made here are stored there as seeds of the fuzzer. */
#include "hooks/targets.h"

#include "plan/cfi_steps.h"

#include <stdlib.h>

enum { CODE_BYTES = 4096 };

/* push rbp; mov rbp, rsp; lea rax, [rip + 16] */
static const uint8_t framed[] = {
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x8d, 0x05, 16, 0, 0, 0, 0x5d, 0xc3
};
/* lea eax, [rdi + rsi]; ret; then padding */
static const uint8_t small[] = { 0x8d, 0x04, 0x37, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc };
/* mov eax, 1; ret */
static const uint8_t simple[] = { 0xb8, 1, 0, 0, 0, 0xc3 };

static const uint8_t image_id[4] = { 1, 2, 3, 4 };

static void save_seed(const hotfn_plan *plan)
{
    const char *folder = getenv("HOTFN_PLAN_SEED");
    char path[512];
    FILE *file;

    if (!folder) {
        return;
    }
    snprintf(path, sizeof path, "%s/%u_functions", folder, plan->function_count);
    file = fopen(path, "wb");
    if (!CHECK(file != NULL)) {
        return;
    }
    fputc(1, file);
    fwrite(plan->bytes, 1, plan->byte_count, file);
    fclose(file);
}

/* A plan for an image with 9 functions.  It hooks function 2 by a jump with a fixup, 5 by an
 * island, and 6, in another section, by a plain jump. */
static hotfn_plan *make_plan(void)
{
    target_code code = target_code_make(CODE_BYTES);
    uint32_t a = target_add(&code, framed, sizeof framed),
             b = target_add(&code, small, sizeof small),
             c = target_add(&code, simple, sizeof simple);
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, HOTFN_MACHINE_X86_64, 9);
    hfn_moved moved;
    hfn_plan_new_entry source = target_source_of(&hfn_arch_x86_64, &code, 2, a, &moved, 5);
    hotfn_plan *plan = NULL;

    hfn_plan_writer_set_id(writer, HOTFN_ID_BUILD_ID, image_id, sizeof image_id);
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    source = target_source_of(&hfn_arch_x86_64, &code, 5, b, &moved, 2);
    source.strategy = HOTFN_STRATEGY_ISLAND;
    source.original_bytes = 3;
    source.island_rva = b + 5;
    source.island_original = code.bytes + b + 5;
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    source = target_source_of(&hfn_arch_x86_64, &code, 6, c, &moved, 5);
    source.section = 1;
    source.end_rva = c + 8000;
    source.flags = HOTFN_VERDICT_TIMED;
    source.tail_exits =
        (const uint32_t[]){ c + 7996, c + 20 }; /* the first one ends with the range */
    source.tail_exit_count = 2;
    source.tail_target_rva = b;
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    CHECK(hfn_plan_writer_add_site(writer, c + 10, 2));
    CHECK(hfn_plan_writer_add_site(writer, c + 7990,
                                   0)); /* too far for one word: needs a word without a site */
    CHECK(hfn_plan_writer_add_site(writer, c + 7998, 1)); /* its last bytes are outside the range */
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    munmap(code.bytes, CODE_BYTES);
    save_seed(plan);
    return plan;
}

static void a_plan_contains_the_target_of_each_site(void)
{
    hotfn_plan *plan = make_plan();
    uint32_t c = hfn_plan_rva_at(plan, 2);
    hfn_site_walk walk = hfn_site_walk_begin(plan);

    CHECK(hfn_site_walk_next(&walk));
    CHECK_EQ_U64(walk.field_rva, c + 10);
    CHECK_EQ_U64(walk.entry, 2);
    CHECK(hfn_site_walk_next(&walk));
    CHECK_EQ_U64(walk.field_rva, c + 7990);
    CHECK_EQ_U64(walk.entry, 0);
    CHECK(!hfn_site_walk_next(&walk));
    CHECK_EQ_U64(plan->site_count, 3); /* with the word that holds only a distance */
    hotfn_plan_destroy(plan);
}

static void a_plan_contains_what_was_written(void)
{
    hotfn_plan *plan = make_plan();
    hotfn_plan_info info = HOTFN_PLAN_INFO_INIT;
    hotfn_plan_entry entry = HOTFN_PLAN_ENTRY_INIT;
    hfn_plan_hook hook;

    CHECK_EQ_I64(hotfn_plan_get_info(plan, &info), HOTFN_OK);
    CHECK_EQ_U64(info.machine, HOTFN_MACHINE_X86_64);
    CHECK_EQ_U64(info.function_count, 9);
    CHECK_EQ_U64(info.entry_count, 3);
    CHECK_EQ_U64(info.id_kind, HOTFN_ID_BUILD_ID);
    CHECK_EQ_U64(info.id_bytes, 4);
    CHECK_MEM(info.id, image_id, 4);
    CHECK(info.bytes == plan->bytes && info.byte_count == plan->byte_count);
    CHECK_EQ_I64(hotfn_plan_get(plan, 1, &entry), HOTFN_OK);
    CHECK_EQ_U64(entry.function_index, 5);
    CHECK_EQ_U64(entry.rva, 32);
    CHECK_EQ_U64(entry.strategy, HOTFN_STRATEGY_ISLAND);
    CHECK_EQ_U64(entry.patch_bytes, 2);
    CHECK_EQ_I64(hotfn_plan_get(plan, 2, &entry), HOTFN_OK);
    CHECK_EQ_U64(entry.flags, HOTFN_VERDICT_TIMED);
    CHECK_EQ_I64(hotfn_plan_get(plan, 3, &entry), HOTFN_E_NOT_FOUND);
    CHECK_EQ_U64(plan->range_count, 2);
    hfn_plan_hook_at(plan, 0, &hook);
    CHECK_EQ_U64(hook.original_bytes, 11);
    CHECK_MEM(hook.original, framed, 11);
    CHECK_EQ_U64(hook.fixup_count, 2);
    CHECK_EQ_U64(hook.step_count, 3);
    CHECK_MEM(hook.steps, ((const uint8_t[]){ 0, 0, 1, 1, 4, 4 }), 6);
    hfn_plan_hook_at(plan, 1, &hook);
    CHECK_EQ_U64(hook.island_rva, 37);
    CHECK_MEM(hook.island_original, small + 5, 5);
    CHECK_EQ_U64(hook.tail_exit_count | hook.tail_target_rva, 0);
    hfn_plan_hook_at(plan, 2, &hook);
    CHECK_EQ_U64(hook.tail_exit_count, 2);
    CHECK_EQ_U64(hook.tail_target_rva, hfn_plan_rva_at(plan, 1));
    CHECK_EQ_U64(hfn_read_le32(hook.tail_exits + PLAN_FIELD_BYTES), hook.rva + 20);
    CHECK_EQ_U64(hfn_plan_find_function(plan, 6), 2);
    CHECK_EQ_U64(hfn_plan_find_function(plan, 3), UINT32_MAX);
    hotfn_plan_destroy(plan);
}

static void an_empty_plan_opens(void)
{
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, HOTFN_MACHINE_X86_64, 0);
    hotfn_plan *plan, *again;

    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    save_seed(plan);
    CHECK_EQ_I64(hotfn_plan_open(&again, plan->bytes, plan->byte_count, 1, NULL, NULL), HOTFN_OK);
    CHECK_EQ_U64(again->entry_count, 0);
    hotfn_plan_destroy(again);
    hotfn_plan_destroy(plan);
}

/* Open a copy that ends at an inaccessible page. */
static hotfn_status open_copy(const uint8_t *bytes, uint64_t byte_count, uint32_t check_sum,
                              hotfn_error *err)
{
    uint64_t page = hfn_os_page_bytes(), room = (byte_count + page - 1) / page * page;
    uint8_t *pages =
        mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *copy = pages + room - byte_count;
    hotfn_plan *plan = NULL;
    hotfn_status status;

    memcpy(copy, bytes, byte_count);
    mprotect(pages + room, page, PROT_NONE);
    status = hotfn_plan_open(&plan, copy, byte_count, check_sum, NULL, err);
    CHECK((status == HOTFN_OK) == (plan != NULL));
    hotfn_plan_destroy(plan);
    munmap(pages, room + page);
    return status;
}

static void a_truncated_plan_does_not_open(void)
{
    hotfn_plan *plan = make_plan();

    for (uint64_t size = 0; size < plan->byte_count; size++) {
        CHECK_EQ_I64(open_copy(plan->bytes, size, 0, NULL), HOTFN_E_FORMAT);
    }
    CHECK_EQ_I64(open_copy(plan->bytes, plan->byte_count, 1, NULL), HOTFN_OK);
    hotfn_plan_destroy(plan);
}

static void the_checksum_detects_a_changed_byte(void)
{
    hotfn_plan *plan = make_plan();
    uint8_t *copy = malloc(plan->byte_count);

    for (uint64_t at = 0; at < plan->byte_count; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            memcpy(copy, plan->bytes, plan->byte_count);
            copy[at] ^= (uint8_t)(1u << bit);
            CHECK(open_copy(copy, plan->byte_count, 1, NULL) != HOTFN_OK);
            open_copy(copy, plan->byte_count, 0, NULL); /* may open, must not fault */
        }
    }
    free(copy);
    hotfn_plan_destroy(plan);
}

static void check_refused(size_t at, uint8_t byte, hotfn_status expected)
{
    hotfn_plan *plan = make_plan();
    uint8_t *copy = malloc(plan->byte_count);

    memcpy(copy, plan->bytes, plan->byte_count);
    copy[at] = byte;
    if (!CHECK_EQ_I64(open_copy(copy, plan->byte_count, 0, NULL), expected)) {
        printf("# byte %zu\n", at);
    }
    free(copy);
    hotfn_plan_destroy(plan);
}

/* The size of that plan in bytes. */
static size_t make_plan_bytes(void)
{
    hotfn_plan *plan = make_plan();
    size_t byte_count = plan->byte_count;

    hotfn_plan_destroy(plan);
    return byte_count;
}

/* The changed plan must be refused, with the offset of the invalid part in the error. */
static void check_refused_at(size_t at, uint8_t byte, size_t part)
{
    hotfn_plan *plan = make_plan();
    uint8_t *copy = malloc(plan->byte_count);
    hotfn_error err = HOTFN_ERROR_INIT;

    memcpy(copy, plan->bytes, plan->byte_count);
    copy[at] = byte;
    CHECK_EQ_I64(open_copy(copy, plan->byte_count, 0, &err), HOTFN_E_FORMAT);
    if (!CHECK_EQ_U64(err.offset, part)) {
        printf("# byte %zu\n", at);
    }
    free(copy);
    hotfn_plan_destroy(plan);
}

static void an_invalid_part_is_named_in_the_error(void)
{
    size_t first = PLAN_HEADER_BYTES, second = first + PLAN_RANGE_BYTES;

    check_refused_at(first + PLAN_RANGE_ENTRY_COUNT_AT, 4, first); /* the plan has 3 entries */
    check_refused_at(first + PLAN_RANGE_ENTRY_COUNT_AT, 0, first);
    check_refused_at(second + PLAN_RANGE_ENTRY_COUNT_AT, 2, second); /* only 1 entry follows */
    check_refused_at(second + PLAN_RANGE_FIRST_AT, 1, second);
    check_refused_at(second + PLAN_RANGE_FIRST_AT, 3, second);
    check_refused_at(first + PLAN_RANGE_END_AT, 0, first); /* ends where it begins */
    check_refused_at(PLAN_REACH_BEGIN_AT, 16, first);
    check_refused_at(PLAN_REACH_END_AT, 24, second);
}

/* The last entry's data end where all data end, just before the sites. */
static void bytes_after_the_end_are_not_read(void)
{
    size_t third = PLAN_HEADER_BYTES + 2 * PLAN_RANGE_BYTES + 2 * PLAN_ENTRY_BYTES;

    check_refused_at(third + PLAN_ENTRY_ORIGINAL_BYTES_AT, PLAN_ORIGINAL_MAX, third);
    check_refused_at(third + PLAN_ENTRY_MOVED_BYTES_AT, HFN_MOVED_MAX, third);
    check_refused_at(third + PLAN_ENTRY_FIXUPS_AT, HFN_FIXUP_MAX, third);
    check_refused_at(third + PLAN_ENTRY_STEPS_AT, PLAN_STEPS_MAX, third);
    check_refused_at(third + PLAN_ENTRY_CFI_BYTES_AT, PLAN_CFI_MAX, third);
    check_refused_at(third + PLAN_ENTRY_TAIL_EXITS_AT, UINT8_MAX, third);
}

static void invalid_fields_are_refused(void)
{
    size_t ranges = PLAN_HEADER_BYTES, entries = ranges + 2 * PLAN_RANGE_BYTES;
    size_t second = entries + PLAN_ENTRY_BYTES, third = second + PLAN_ENTRY_BYTES;
    size_t sites = make_plan_bytes() - 3 * PLAN_SITE_BYTES;

    check_refused(PLAN_MAGIC_AT, 'X', HOTFN_E_FORMAT);
    check_refused(PLAN_VERSION_AT, 99, HOTFN_E_MISMATCH);
    check_refused(PLAN_ID_BYTES_AT, 33, HOTFN_E_FORMAT);
    check_refused(PLAN_FLAGS_AT, 2, HOTFN_E_FORMAT);
    check_refused(PLAN_FUNCTION_COUNT_AT, 6, HOTFN_E_FORMAT); /* the plan hooks function 6 */
    check_refused(PLAN_ENTRY_COUNT_AT, 2, HOTFN_E_FORMAT);
    check_refused(PLAN_RANGE_COUNT_AT, 0, HOTFN_E_FORMAT);
    check_refused(PLAN_REACH_END_AT, 8, HOTFN_E_FORMAT);
    check_refused(ranges + PLAN_RANGE_ENTRY_COUNT_AT, 9, HOTFN_E_FORMAT);
    check_refused(ranges + PLAN_RANGE_END_AT, 40, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_DATA_AT, 255, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_STRATEGY_AT, HOTFN_STRATEGY_INT3, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_STRATEGY_AT, HOTFN_STRATEGY_RETARGET, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_PATCH_BYTES_AT, 6, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_ORIGINAL_BYTES_AT, 4, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_MOVED_BYTES_AT, 0, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_FIXUPS_AT, 9, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_SCRATCH_AT, 4 + 1, HOTFN_E_FORMAT);  /* rsp */
    check_refused(entries + PLAN_ENTRY_SCRATCH_AT, 12 + 1, HOTFN_E_FORMAT); /* r12 */
    check_refused(entries + PLAN_ENTRY_SCRATCH_AT, 17, HOTFN_E_FORMAT);
    check_refused(entries + PLAN_ENTRY_RVA_AT, 40,
                  HOTFN_E_FORMAT); /* higher than the next entry's */
    check_refused(entries + PLAN_ENTRY_STRATEGY_AT, HOTFN_STRATEGY_PUN,
                  HOTFN_E_FORMAT); /* a pun has fewer than 5 bytes */
    check_refused(second + PLAN_ENTRY_FUNCTION_AT, 2, HOTFN_E_FORMAT);
    check_refused(second + PLAN_ENTRY_ISLAND_AT, 0xff, HOTFN_E_FORMAT);    /* overlaps the site  */
    check_refused(second + PLAN_ENTRY_ISLAND_AT, 0x7f, HOTFN_E_FORMAT);    /* outside its range  */
    check_refused(second + PLAN_ENTRY_TAIL_TARGET_AT, 16, HOTFN_E_FORMAT); /* without tail exits */
    check_refused(second + PLAN_ENTRY_TAIL_EXITS_AT, 1, HOTFN_E_FORMAT); /* without a tail target */
    check_refused(third + PLAN_ENTRY_FLAGS_AT, 0, HOTFN_E_FORMAT);       /* not timed  */
    check_refused(third + PLAN_ENTRY_TAIL_TARGET_AT + 3, 0x7f, HOTFN_E_FORMAT); /* too far   */
    check_refused(sites - PLAN_FIELD_BYTES, 0, HOTFN_E_FORMAT); /* before its function */
    check_refused(sites - PLAN_FIELD_BYTES, 64 + 1,
                  HOTFN_E_FORMAT); /* less than 2 bytes after the entry */
    check_refused(sites - PLAN_FIELD_BYTES + 1, 0xff, HOTFN_E_FORMAT); /* outside its range */
    check_refused(PLAN_SITE_COUNT_AT, 2, HOTFN_E_FORMAT);
    check_refused(sites + 1, 0x30, HOTFN_E_FORMAT); /* entry 3 of 3           */
    check_refused(sites + 3, 0x10, HOTFN_E_FORMAT); /* an entry far beyond that */
    check_refused(sites + 5, 0x0f, HOTFN_E_FORMAT); /* a distance made a site */
    check_refused(sites + 8, 0xff, HOTFN_E_FORMAT); /* beyond the plan's reach */
}

static void a_step_beyond_the_moved_code_is_refused(void)
{
    hotfn_plan *plan = make_plan();
    hfn_plan_hook hook;
    size_t last;

    hfn_plan_hook_at(plan, 0, &hook);
    last = (size_t)(hook.steps - plan->bytes) + (hook.step_count - 1u) * PLAN_STEP_BYTES;
    check_refused(last + 1, hook.moved_bytes, HOTFN_E_FORMAT);
    hotfn_plan_destroy(plan);
}

/* ---- Plans of one entry, each slightly different from a plan that opens. */

typedef struct plan_case {
    uint32_t strategy, patch_bytes, original_bytes;
    uint8_t first_byte; /* of the original             */
    int32_t island_at;  /* distance from the site      */
    uint32_t scratch, flags;
    uint32_t arguments; /* of bits 8 to 15: the words to write back */
    uint32_t machine;
    hotfn_status status; /* of opening the plan */
} plan_case;

/* Finishing a plan opens it. */
static hotfn_status finish_plan_of(const plan_case *row)
{
    static const hfn_moved moved = { .bytes = { 0x90 }, .length = 1, .instruction_count = 1 };
    uint8_t code[64] = { row->first_byte };
    uint32_t machine = row->machine ? row->machine : HOTFN_MACHINE_X86_64;
    hfn_plan_new_entry source = { .rva = 64,
                                  .strategy = row->strategy,
                                  .flags = row->flags,
                                  .patch_offset = 8, /* room for an island */
                                  .patch_bytes = row->patch_bytes,
                                  .arguments = row->arguments & 0xff,
                                  .stored_arguments = row->arguments >> 8,
                                  .scratch = row->scratch,
                                  .original = code,
                                  .original_bytes = row->original_bytes,
                                  .island_rva = (uint64_t)(64 + 8 + row->island_at),
                                  .island_original = code,
                                  .moved = &moved };
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, machine, 1);
    hotfn_plan *plan = NULL;
    hotfn_status status;

    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    status = hfn_plan_writer_finish(writer, &plan, NULL);
    hfn_plan_writer_destroy(writer);
    hotfn_plan_destroy(plan);
    return status;
}

static void an_entry_opens_only_if_its_strategy_can_be_patched(void)
{
    enum {
        JUMP = HOTFN_STRATEGY_JUMP,
        PAD = HOTFN_STRATEGY_JUMP_PAD,
        RETARGET = HOTFN_STRATEGY_RETARGET,
        ISLAND = HOTFN_STRATEGY_ISLAND,
        PUN = HOTFN_STRATEGY_PUN,
        TIMED = HOTFN_VERDICT_TIMED,
        I386 = HOTFN_MACHINE_X86,
        REFUSED = HOTFN_E_FORMAT,
        MAX_WORDS = HFN_ARGUMENTS_MAX_64 / 8,
    };
    static const plan_case rows[] = {
        { JUMP, 5, 5, 0x90, 0, 0, 0, 0, 0, HOTFN_OK },
        { JUMP, 4, 5, 0x90, 0, 0, 0, 0, 0, REFUSED },
        { JUMP, 6, 6, 0x90, 0, 0, 0, 0, 0, REFUSED },
        { JUMP, 0, 5, 0x90, 0, 0, 0, 0, 0, REFUSED },
        { JUMP, 5, PLAN_ORIGINAL_MAX, 0x90, 0, 0, 0, 0, 0, HOTFN_OK },
        { PAD, 5, 5, 0x90, 0, 0, 0, 0, 0, HOTFN_OK },
        { PAD, 4, 5, 0x90, 0, 0, 0, 0, 0, REFUSED },
        { RETARGET, 5, 5, 0xe8, 0, 0, 0, 0, 0, HOTFN_OK },
        { RETARGET, 5, 5, 0xe9, 0, 0, 0, 0, 0, HOTFN_OK },
        { RETARGET, 5, 5, 0xe7, 0, 0, 0, 0, 0, REFUSED },
        { RETARGET, 5, 5, 0xea, 0, 0, 0, 0, 0, REFUSED },
        { RETARGET, 2, 5, 0xe8, 0, 0, 0, 0, 0, REFUSED },
        { ISLAND, 2, 2, 0x90, 2, 0, 0, 0, 0, HOTFN_OK },
        { ISLAND, 2, 2, 0x90, 1, 0, 0, 0, 0, REFUSED }, /* overlaps the short jump */
        { ISLAND, 2, 2, 0x90, -4, 0, 0, 0, 0, REFUSED },
        { ISLAND, 2, 2, 0x90, -5, 0, 0, 0, 0, HOTFN_OK },
        { ISLAND, 2, 2, 0x90, -8, 0, 0, 0, 0, HOTFN_OK },
        { ISLAND, 3, 3, 0x90, 5, 0, 0, 0, 0, REFUSED },
        { PUN, 1, 5, 0x90, 0, 0, 0, 0, 0, HOTFN_OK },
        { PUN, 4, 5, 0x90, 0, 0, 0, 0, 0, HOTFN_OK },
        { PUN, 5, 5, 0x90, 0, 0, 0, 0, 0, REFUSED },
        { PUN, 0, 5, 0x90, 0, 0, 0, 0, 0, REFUSED },
        { PUN, 3, 4, 0x90, 0, 0, 0, 0, 0, REFUSED }, /* the jump's last byte is missing */
        { JUMP, 5, 5, 0x90, 0, 4, 0, 0, 0, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 5, 0, 0, 0, REFUSED }, /* rsp */
        { JUMP, 5, 5, 0x90, 0, PLAN_SCRATCH_MAX, 0, 0, 0, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, PLAN_SCRATCH_MAX + 1, 0, 0, 0, REFUSED },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 0, 0, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, MAX_WORDS, 0, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, MAX_WORDS + 1, 0, REFUSED },
        { JUMP, 5, 5, 0x90, 0, 0, HOTFN_VERDICT_RED_ZONE, 1, 0, REFUSED }, /* not timed */
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 31, I386, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, HOTFN_POPS_ALL << 5, I386, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, (HOTFN_POPS_ALL + 1) << 5, I386, REFUSED },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, HOTFN_POPS_ONE << 5 | 1, I386, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, HOTFN_POPS_ONE << 5, I386,
          REFUSED }, /* but there is no word */
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, HOTFN_POPS_NOTHING << 5 | 1, I386, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 0xff08, I386, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 0xff07, I386, REFUSED }, /* more than there are */
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 0x200 | HOTFN_POPS_ONE << 5 | 2, I386, HOTFN_OK },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 0x100 | HOTFN_POPS_ONE << 5 | 2, I386, REFUSED },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 0x200 | HOTFN_POPS_ALL << 5 | 2, I386, REFUSED },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 0x100, I386, REFUSED },
        { JUMP, 5, 5, 0x90, 0, 0, TIMED, 0x101, 0, REFUSED },
    };

    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!CHECK_EQ_I64(finish_plan_of(&rows[i]), rows[i].status)) {
            printf("# row %u\n", i);
        }
    }
}

static hotfn_status open_changed(const hotfn_plan *plan, const uint8_t *at, uint64_t value,
                                 uint32_t value_bytes)
{
    uint8_t *copy = malloc(plan->byte_count);
    hotfn_status status;

    memcpy(copy, plan->bytes, plan->byte_count);
    memcpy(copy + (at - plan->bytes), &value, value_bytes);
    status = open_copy(copy, plan->byte_count, 0, NULL);
    free(copy);
    return status;
}

static void fixups_stay_within_the_moved_code_and_the_plans_reach(void)
{
    hotfn_plan *plan = make_plan();
    hfn_plan_hook hook;

    hfn_plan_hook_at(plan, 0, &hook);
    const uint8_t *field = hook.fixups; /* at, end, distance from the site (i32) */
    int64_t begin = plan->reach_begin - hook.site_rva, end = plan->reach_end - hook.site_rva;
    CHECK_EQ_I64(open_changed(plan, field + 2, (uint64_t)begin, 4), HOTFN_OK);
    CHECK_EQ_I64(open_changed(plan, field + 2, (uint64_t)(begin - 1), 4), HOTFN_E_FORMAT);
    CHECK_EQ_I64(open_changed(plan, field + 2, (uint64_t)(end - 1), 4), HOTFN_OK);
    CHECK_EQ_I64(open_changed(plan, field + 2, (uint64_t)end, 4), HOTFN_E_FORMAT);
    CHECK_EQ_I64(open_changed(plan, field, hook.moved_bytes - 3u, 1), HOTFN_E_FORMAT);
    CHECK_EQ_I64(open_changed(plan, hook.cfi, 0x0a, 1),
                 HOTFN_E_FORMAT); /* not a step instruction */
    CHECK_EQ_I64(open_changed(plan, hook.cfi, 0x40 | 0x3f, 1),
                 HOTFN_E_FORMAT); /* beyond the code */
    hotfn_plan_destroy(plan);
}

/* A plan with two entries.  The first has one moved byte and no fixups or steps; its data is
 * followed by the zeros of the second entry. */
static hotfn_plan *make_plan_with_free_bytes(void)
{
    static const hfn_moved one_byte = { .bytes = { 0x90 }, .length = 1 };
    static const hfn_moved large = { .length = 90 };
    static const uint8_t zeros[PLAN_ORIGINAL_MAX];
    hfn_plan_new_entry source = { .rva = 64,
                                  .strategy = HOTFN_STRATEGY_JUMP,
                                  .patch_bytes = 5,
                                  .original = zeros,
                                  .original_bytes = 5,
                                  .moved = &one_byte };
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, HOTFN_MACHINE_X86_64, 2);
    hotfn_plan *plan = NULL;

    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    source.function_index = 1;
    source.rva = 100;
    source.original_bytes = PLAN_ORIGINAL_MAX;
    source.moved = &large;
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &plan, NULL), HOTFN_OK);
    hfn_plan_writer_destroy(writer);
    return plan;
}

static void an_entry_outside_its_bounds_is_refused(void)
{
    static const struct {
        uint32_t at, maximum;
    } bytes[] = {
        { PLAN_ENTRY_MOVED_BYTES_AT, HFN_MOVED_MAX },
        { PLAN_ENTRY_ORIGINAL_BYTES_AT, PLAN_ORIGINAL_MAX },
        { PLAN_ENTRY_STEPS_AT, PLAN_STEPS_MAX },
    };
    hotfn_plan *plan = make_plan_with_free_bytes();
    const uint8_t *entry = plan->bytes + PLAN_HEADER_BYTES + PLAN_RANGE_BYTES;
    const uint8_t *range = plan->bytes + PLAN_HEADER_BYTES;

    for (uint32_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        if (!CHECK_EQ_I64(open_changed(plan, entry + bytes[i].at, bytes[i].maximum, 1), HOTFN_OK) ||
            !CHECK_EQ_I64(open_changed(plan, entry + bytes[i].at, bytes[i].maximum + 1, 1),
                          HOTFN_E_FORMAT)) {
            printf("# row %u\n", i);
        }
    }
    CHECK_EQ_I64(open_changed(plan, entry + PLAN_ENTRY_CFI_BYTES_AT, PLAN_CFI_MAX + 1, 1),
                 HOTFN_E_FORMAT);
    CHECK_EQ_I64(open_changed(plan, entry + PLAN_ENTRY_RVA_AT, 63, 4), HOTFN_E_FORMAT);
    CHECK_EQ_I64(open_changed(plan, range + PLAN_RANGE_END_AT, 131, 4), HOTFN_E_FORMAT);
    CHECK_EQ_I64(open_changed(plan, entry + PLAN_ENTRY_MOVED_BYTES_AT, 0, 1), HOTFN_E_FORMAT);
    hotfn_plan_destroy(plan);
}

static void a_header_outside_its_bounds_is_refused(void)
{
    hotfn_plan *plan = make_plan();
    const uint8_t *reach_begin = plan->bytes + PLAN_REACH_BEGIN_AT;
    const uint8_t *reach_end = plan->bytes + PLAN_REACH_END_AT;
    const uint64_t gib_2 = UINT64_C(1) << 31;
    uint8_t *longer = calloc(1, plan->byte_count + 8);

    CHECK_EQ_I64(open_changed(plan, reach_begin, 0 - gib_2, 8), HOTFN_OK);
    CHECK_EQ_I64(open_changed(plan, reach_begin, 0 - gib_2 - 1, 8), HOTFN_E_FORMAT);
    CHECK_EQ_I64(open_changed(plan, reach_end, 2 * gib_2, 8), HOTFN_OK);
    CHECK_EQ_I64(open_changed(plan, reach_end, 2 * gib_2 + 1, 8), HOTFN_E_FORMAT);
    CHECK_EQ_I64(open_changed(plan, plan->bytes + PLAN_ID_BYTES_AT, 32, 4), HOTFN_OK);
    CHECK_EQ_I64(open_changed(plan, plan->bytes + PLAN_ID_BYTES_AT, 33, 4), HOTFN_E_FORMAT);
    memcpy(longer, plan->bytes, plan->byte_count);
    CHECK_EQ_I64(open_copy(longer, plan->byte_count + 8, 0, NULL), HOTFN_E_FORMAT);
    CHECK(hfn_plan_is_whole(plan->bytes, plan->byte_count));
    longer[plan->byte_count - 1] ^= 1;
    CHECK(!hfn_plan_is_whole(longer, plan->byte_count));
    free(longer);
    hotfn_plan_destroy(plan);
}

static void an_entry_that_the_format_cannot_hold_is_dropped(void)
{
    target_code code = target_code_make(CODE_BYTES);
    uint32_t rva = target_add(&code, simple, sizeof simple);
    hfn_plan_writer *writer = hfn_plan_writer_create(NULL, HOTFN_MACHINE_X86_64, 2);
    hfn_moved moved;
    hfn_plan_new_entry source = target_source_of(&hfn_arch_x86_64, &code, 0, rva, &moved, 5);
    hotfn_plan *plan;

    source.rva = UINT32_MAX - 2;
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_E_LIMIT);
    source.rva = rva;
    moved.fixups[0].target_rva = UINT64_C(1) << 40;
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_E_LIMIT);
    moved.fixups[0].target_rva = rva + 5;
    CHECK_EQ_I64(hfn_plan_writer_add(writer, &source), HOTFN_OK);
    CHECK_EQ_I64(hfn_plan_writer_finish(writer, &plan, NULL), HOTFN_OK);
    CHECK_EQ_U64(plan->entry_count, 1);
    hfn_plan_writer_destroy(writer);
    hotfn_plan_destroy(plan);
}

static void unwinding_steps_are_checked(void)
{
    static const uint8_t good[] = { 0x41, 0x0e, 16, 0x86, 2, 0x02, 100, 0xc6, 0x0d, 6 };
    static const uint8_t unsupported[] = { 0x0a };     /* DW_CFA_remember_state */
    static const uint8_t truncated[] = { 0x0e, 0x80 }; /* the number is incomplete */
    static const uint8_t truncated_advance[] = { 0x02 };
    uint32_t advanced = 0;

    CHECK(hfn_cfi_check_steps(good, sizeof good, &advanced));
    CHECK_EQ_U64(advanced, 101);
    CHECK(!hfn_cfi_check_steps(unsupported, sizeof unsupported, &advanced));
    CHECK(!hfn_cfi_check_steps(truncated, sizeof truncated, &advanced));
    CHECK(!hfn_cfi_check_steps(truncated_advance, sizeof truncated_advance, &advanced));
}

static const check_test tests[] = {
    CHECK_TEST(a_plan_contains_what_was_written),
    CHECK_TEST(a_plan_contains_the_target_of_each_site),
    CHECK_TEST(an_empty_plan_opens),
    CHECK_TEST(a_truncated_plan_does_not_open),
    CHECK_TEST(the_checksum_detects_a_changed_byte),
    CHECK_TEST(an_invalid_part_is_named_in_the_error),
    CHECK_TEST(bytes_after_the_end_are_not_read),
    CHECK_TEST(invalid_fields_are_refused),
    CHECK_TEST(a_step_beyond_the_moved_code_is_refused),
    CHECK_TEST(an_entry_opens_only_if_its_strategy_can_be_patched),
    CHECK_TEST(fixups_stay_within_the_moved_code_and_the_plans_reach),
    CHECK_TEST(an_entry_outside_its_bounds_is_refused),
    CHECK_TEST(a_header_outside_its_bounds_is_refused),
    CHECK_TEST(an_entry_that_the_format_cannot_hold_is_dropped),
    CHECK_TEST(unwinding_steps_are_checked),
};
CHECK_MAIN(tests)
