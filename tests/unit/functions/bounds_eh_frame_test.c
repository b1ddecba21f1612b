/* SPDX-License-Identifier: MIT */
/* The ranges of FDEs, and which of them begin inside a frame. */
#include "functions/bounds_eh_frame.h"
#include "functions/eh_frame_read.h"

#include "base/counting_env.h"
#include "base/memory.h"
#include "check.h"
#include "functions/eh_frame_builder.h"

enum {
    TEXT = 1024,
    EH_FRAME = 1280,
    TEXT_BYTES = 256
}; /* the addresses at which elf_add places them */

static elf_builder *new_with_text(uint16_t machine)
{
    elf_builder *b = elf_new(machine == 3 ? 32 : 64, false, machine);
    uint8_t text[TEXT_BYTES];

    memset(text, 0xc3, sizeof text);
    elf_add(b, ".text", 1, ELF_ALLOC | ELF_CODE, text, sizeof text);
    return b;
}

/* Adds this .eh_frame to b and returns its FDEs; frees b and eh.  The caller frees the list. */
static hfn_fde_list read_fdes(elf_builder *b, elf_bytes *eh, int *warnings)
{
    hfn_fde_list list = { NULL, 0, 0 };
    hotfn_image *image = NULL;
    counting c;
    hotfn_env env = counting_env(&c);

    if (eh) {
        uint32_t section = elf_add_buffer(b, ".eh_frame", 1, ELF_ALLOC, eh);
        CHECK_EQ_U64(b->sections[section].address, EH_FRAME);
    }
    elf_finish(b);
    env.realloc_fn = NULL; /* the list outlives c */
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "e", &env, NULL),
                 HOTFN_OK);
    env = hfn_env_fill(&env);
    CHECK(hfn_bounds_eh_frame(&list, image, &env));
    hotfn_image_close(image);
    free(b);
    if (warnings) {
        *warnings = c.warnings;
    }
    return list;
}

static void finish(hfn_fde_list *list)
{
    hotfn_env env = hfn_env_fill(NULL);

    hfn_fde_list_finish(list, &env);
}

static void ranges_are_sorted_by_address(void)
{
    elf_builder *b = new_with_text(62);
    elf_bytes *eh = elf_buffer(b);
    size_t cie = put_plain_cie(eh);

    put_fde(eh, cie, EH_FRAME, TEXT + 16, 7, "", 0);
    put_fde(eh, cie, EH_FRAME, TEXT, 5, "\x41\x0e\x10", 3); /* advance 1, cfa 16 */
    put(eh, 0, 4);
    hfn_fde_list list = read_fdes(b, eh, NULL);
    if (CHECK_EQ_U64(list.count, 2)) {
        CHECK_EQ_U64(list.items[0].rva, TEXT);
        CHECK_EQ_U64(list.items[0].byte_count, 5);
        CHECK_EQ_I64(list.items[0].cfa_offset, 8);
        CHECK_EQ_U64(list.items[0].flags, 0);
        CHECK_EQ_U64(list.items[1].rva, TEXT + 16);
    }
    finish(&list);
}

/* Returns the FDE that is read, if it has these instructions. */
static hfn_fde read_one_fde(const char *code, size_t code_bytes)
{
    elf_builder *b = new_with_text(62);
    elf_bytes *eh = elf_buffer(b);
    hfn_fde fde = { .rva = 0 };

    put_fde(eh, put_plain_cie(eh), EH_FRAME, TEXT, 5, code, code_bytes);
    hfn_fde_list list = read_fdes(b, eh, NULL);
    if (CHECK_EQ_U64(list.count, 1)) {
        fde = list.items[0];
    }
    finish(&list);
    return fde;
}

#define READ_FDE(code) read_one_fde(code, sizeof code - 1)

static void an_fde_that_begins_inside_a_frame_is_marked(void)
{
    CHECK_EQ_U64(READ_FDE("\x0e\x20").flags, HFN_FDE_INSIDE); /* def_cfa_offset 32 */
    CHECK_EQ_I64(READ_FDE("\x0e\x20").cfa_offset, 32);
    CHECK_EQ_U64(READ_FDE("\x86\x02").flags, HFN_FDE_INSIDE); /* rbp at cfa-16     */
    CHECK_EQ_U64(READ_FDE("\x05\x03\x02").flags, HFN_FDE_INSIDE);
    CHECK_EQ_U64(READ_FDE("\x0c\x06\x10").flags, HFN_FDE_INSIDE); /* cfa rbp+16    */
    CHECK_EQ_I64(READ_FDE("\x0c\x06\x10").cfa_offset, -1);
    CHECK_EQ_U64(READ_FDE("\x0d\x06").flags, HFN_FDE_INSIDE); /* def_cfa_register  */
    CHECK_EQ_U64(READ_FDE("\x0f\x01\x30").flags, HFN_FDE_INSIDE | HFN_FDE_EXPRESSION);
    CHECK_EQ_U64(READ_FDE("\x13\x7c").flags, HFN_FDE_INSIDE);         /* cfa -4 * -8 = 32  */
    CHECK_EQ_U64(READ_FDE("\x10\x06\x01\x30").flags, HFN_FDE_INSIDE); /* expression */
}

static void instructions_after_an_advance_are_ignored(void)
{
    CHECK_EQ_U64(READ_FDE("").flags, 0);
    CHECK_EQ_U64(READ_FDE("\x41\x0e\x20\x86\x02").flags, 0);          /* advance_loc   */
    CHECK_EQ_U64(READ_FDE("\x02\x01\x0e\x20").flags, 0);              /* advance_loc1  */
    CHECK_EQ_U64(READ_FDE("\x03\x01\x00\x0e\x20").flags, 0);          /* advance_loc2  */
    CHECK_EQ_U64(READ_FDE("\x04\x00\x01\x00\x00\x0e\x20").flags, 0);  /* advance_loc4  */
    CHECK_EQ_U64(READ_FDE("\x02\x00\x0e\x20").flags, HFN_FDE_INSIDE); /* advance by 0 */
}

static void rules_that_an_entry_may_have_do_not_mark_an_fde(void)
{
    CHECK_EQ_U64(READ_FDE("\x07\x10").flags, 0); /* undefined rip (_start)    */
    CHECK_EQ_U64(READ_FDE("\x08\x03\x09\x03\x00").flags, 0);
    CHECK_EQ_U64(READ_FDE("\x0a\x2e\x08\xc3").flags, 0); /* remember, args, restore   */
    CHECK_EQ_U64(READ_FDE("\x90\x01").flags, 0);         /* rip at cfa-8, once more   */
}

static void unknown_instructions_do_not_mark_an_fde(void)
{
    CHECK_EQ_U64(READ_FDE("\x0e\x20\x3f").flags, 0);
    CHECK_EQ_I64(READ_FDE("\x0e\x20\x3f").cfa_offset, -1);
    CHECK_EQ_U64(READ_FDE("\x0f\x7f").flags, 0); /* a block beyond the end */
}

static void signal_frames_and_language_data_are_flagged(void)
{
    elf_builder *b = new_with_text(62);
    elf_bytes *eh = elf_buffer(b);
    size_t cie = put_cie(eh, "zRS", "\x1b", 1, ENTRY_X86_64, 5), start;

    put_fde(eh, cie, EH_FRAME, TEXT, 5, "", 0);
    /* Personality udata4, LSDA udata4, pointers pcrel sdata4. */
    cie = put_cie(eh, "zPLR", "\x03\1\0\0\0\x03\x1b", 7, ENTRY_X86_64, 5);
    for (uint32_t lsda = 0; lsda < 2; lsda++) {
        start = eh->size;
        put(eh, 20, 4), put(eh, start + 4 - cie, 4);
        put(eh, TEXT + 8 + 8 * lsda - (EH_FRAME + eh->size), 4), put(eh, 5, 4);
        put(eh, 4, 1), put(eh, lsda, 4), put(eh, 0, 3);
    }
    hfn_fde_list list = read_fdes(b, eh, NULL);
    if (CHECK_EQ_U64(list.count, 3)) {
        CHECK_EQ_U64(list.items[0].flags, HFN_FDE_SIGNAL);
        CHECK_EQ_U64(list.items[1].flags, 0);
        CHECK_EQ_U64(list.items[2].flags, HFN_FDE_LSDA);
    }
    finish(&list);
}

/* Returns the FDE that is read, if it has an LSDA and then these instructions. */
static hfn_fde read_fde_with_lsda(const char *cfi, size_t size)
{
    elf_builder *b = new_with_text(62);
    elf_bytes *eh = elf_buffer(b);
    size_t cie = put_cie(eh, "zLR", "\x1b\x1b", 2, ENTRY_X86_64, 5), start = eh->size;
    hfn_fde fde = { 0 };

    put(eh, 17 + size, 4), put(eh, start + 4 - cie, 4), put(eh, TEXT - (EH_FRAME + eh->size), 4);
    put(eh, 9, 4), put(eh, 4, 1), put(eh, TEXT - (EH_FRAME + eh->size), 4);
    put_data(eh, cfi, size);
    hfn_fde_list list = read_fdes(b, eh, NULL);
    if (CHECK_EQ_U64(list.count, 1)) {
        fde = list.items[0];
    }
    finish(&list);
    CHECK(fde.cfi_bytes == 0 || fde.cfi_rva == EH_FRAME + start + 21);
    return fde;
}
#define READ_FDE_WITH_LSDA(text) read_fde_with_lsda(text, sizeof(text) - 1)

static void fdes_with_argument_sizes_keep_their_instructions(void)
{
    CHECK_EQ_U64(READ_FDE_WITH_LSDA("\x41\x2e\x10").flags, HFN_FDE_LSDA | HFN_FDE_ARGUMENTS);
    CHECK_EQ_U64(READ_FDE_WITH_LSDA("\x41\x2e\x10").cfi_bytes, 3);
    CHECK_EQ_U64(READ_FDE_WITH_LSDA("\x01\0\0\0\0").cfi_bytes,
                 5); /* set_loc: its target is unknown */
    CHECK_EQ_U64(READ_FDE_WITH_LSDA("\x41\x3f\x10").cfi_bytes, 3); /* an unknown instruction */
    CHECK_EQ_U64(READ_FDE_WITH_LSDA("\x41\x0e\x10").cfi_bytes, 0);
    CHECK_EQ_U64(READ_FDE_WITH_LSDA("\x41\x0a\x0e\x10\x42\x0b").flags,
                 HFN_FDE_LSDA); /* remember, restore */
}

/* The size of the arguments at offset; UINT64_MAX if it is unknown. */
static uint64_t arguments_at(const char *cfi, size_t size, uint64_t offset)
{
    const hfn_span span = { (const uint8_t *)cfi, size, false };
    uint64_t byte_count = 0;

    return hfn_eh_frame_arguments_at(span, offset, &byte_count) ? byte_count : UINT64_MAX;
}
#define ARGUMENTS_AT(text, offset) arguments_at(text, sizeof(text) - 1, offset)

static void an_argument_size_holds_from_its_offset_on(void)
{
    /* Advance by 5, 16 bytes of arguments; advance by 3, 0 bytes. */
    CHECK_EQ_U64(ARGUMENTS_AT("\x45\x2e\x10\x43\x2e\x00", 4), 0);
    CHECK_EQ_U64(ARGUMENTS_AT("\x45\x2e\x10\x43\x2e\x00", 5), 16);
    CHECK_EQ_U64(ARGUMENTS_AT("\x45\x2e\x10\x43\x2e\x00", 7), 16);
    CHECK_EQ_U64(ARGUMENTS_AT("\x45\x2e\x10\x43\x2e\x00", 8), 0);
    /* Advances with operands of 1, 2 and 4 bytes: 0x80 + 0x0102 + 0x01000000 = 0x1000182. */
    CHECK_EQ_U64(ARGUMENTS_AT("\x02\x80\x03\x02\x01\x04\0\0\0\x01\x2e\x81\x01", 0x1000182), 129);
    CHECK_EQ_U64(ARGUMENTS_AT("\x02\x80\x03\x02\x01\x04\0\0\0\x01\x2e\x81\x01", 0x1000181), 0);
    /* remember_state and restore_state do not change the size: libgcc stores it outside of the
     * rules (unwind-dw2.c). */
    CHECK_EQ_U64(ARGUMENTS_AT("\x0a\x41\x2e\x10\x41\x0b\x41\x0e\x08", 3), 16);
    CHECK_EQ_U64(ARGUMENTS_AT("\x01\0\0\0\0\x2e\x10", 9), UINT64_MAX); /* set_loc */
    CHECK_EQ_U64(ARGUMENTS_AT("\x41\x3f", 9), UINT64_MAX);
    CHECK_EQ_U64(ARGUMENTS_AT("\x41\x2e\x80", 9), UINT64_MAX); /* truncated */
    CHECK_EQ_U64(ARGUMENTS_AT("\x49\x3f", 8), 0); /* the unknown instruction is beyond the offset */
}

/* FDEs with absptr, with a CIE without augmentation, and with a length of 64 bits. */
static void other_encodings_are_read(void)
{
    elf_builder *b = new_with_text(62);
    elf_bytes *eh = elf_buffer(b);
    size_t cie = put_cie(eh, "", "", 0, ENTRY_X86_64, 5), start = eh->size;

    put(eh, 20, 4), put(eh, start + 4 - cie, 4), put(eh, TEXT, 8), put(eh, 5, 8);
    start = eh->size;
    put(eh, UINT32_MAX, 4), put(eh, 20, 8), put(eh, start + 12 - cie, 4);
    put(eh, TEXT + 9, 8), put(eh, 6, 8);
    cie = put_cie(eh, "zR", "\x01", 1, ENTRY_X86_64, 5); /* uleb128 */
    start = eh->size;
    put(eh, 8, 4), put(eh, start + 4 - cie, 4), put_data(eh, "\x90\x08\x07\x00", 4);
    hfn_fde_list list = read_fdes(b, eh, NULL);
    if (CHECK_EQ_U64(list.count, 3)) {
        CHECK_EQ_U64(list.items[1].rva, TEXT + 9);
        CHECK_EQ_U64(list.items[2].rva, TEXT + 16);
        CHECK_EQ_U64(list.items[2].byte_count, 7);
    }
    finish(&list);
}

static void each_machine_has_its_own_entry_rule(void)
{
    /* AArch64: cfa sp+0 at an entry; x30 is the return address. */
    elf_builder *b = new_with_text(183);
    elf_bytes *eh = elf_buffer(b);
    size_t cie = put_cie(eh, "zR", "\x1b", 1, "\x0c\x1f\x00", 3);

    put_fde(eh, cie, EH_FRAME, TEXT, 4, "", 0);
    put_fde(eh, cie, EH_FRAME, TEXT + 4, 4, "\x0e\x10", 2);
    hfn_fde_list list = read_fdes(b, eh, NULL);
    if (CHECK_EQ_U64(list.count, 2)) {
        CHECK_EQ_U64(list.items[0].flags, 0);
        CHECK_EQ_U64(list.items[1].flags, HFN_FDE_INSIDE);
    }
    finish(&list);
    /* A machine without an entry rule: the first byte is not examined. */
    b = new_with_text(21);
    eh = elf_buffer(b);
    put_fde(eh, put_plain_cie(eh), EH_FRAME, TEXT, 4, "\x0e\x10", 2);
    list = read_fdes(b, eh, NULL);
    if (CHECK_EQ_U64(list.count, 1)) {
        CHECK_EQ_U64(list.items[0].flags, 0);
        CHECK_EQ_I64(list.items[0].cfa_offset, -1);
    }
    finish(&list);
}

static void fdes_of_dropped_or_empty_functions_are_skipped(void)
{
    elf_builder *b = new_with_text(62);
    elf_bytes *eh = elf_buffer(b);
    size_t cie = put_plain_cie(eh);

    put_fde(eh, cie, EH_FRAME, TEXT, 0, "", 0);                    /* empty           */
    put_fde(eh, cie, EH_FRAME, 0x10000000, 5, "", 0);              /* in no segment   */
    put_fde(eh, cie, EH_FRAME, EH_FRAME + eh->size + 8, 5, "", 0); /* null pointer */
    put_fde(eh, cie + 4, EH_FRAME, TEXT, 5, "", 0);                /* refers to no CIE */
    put(eh, 0, 4); /* ends one object file's part, not the section */
    put_fde(eh, cie, EH_FRAME, TEXT + 8, 5, "", 0);
    hfn_fde_list list = read_fdes(b, eh, NULL);
    CHECK_EQ_U64(list.count, 1);
    finish(&list);
}

static void damage_ends_the_reading_with_a_warning(void)
{
    elf_builder *b = new_with_text(62);
    elf_bytes *eh = elf_buffer(b);
    size_t cie = put_plain_cie(eh), second;
    int warnings = 0;

    put_fde(eh, cie, EH_FRAME, TEXT, 5, "", 0);
    second = put_fde(eh, cie, EH_FRAME, TEXT + 8, 5, "", 0);
    put_at(eh, second, 0x7ffffff0, 4);
    hfn_fde_list list = read_fdes(b, eh, &warnings);
    CHECK_EQ_U64(list.count, 1);
    CHECK_EQ_I64(warnings, 1);
    finish(&list);
}

static void an_image_without_unwind_data_has_no_ranges(void)
{
    hfn_fde_list list = read_fdes(new_with_text(62), NULL, NULL);

    CHECK_EQ_U64(list.count, 0);
    finish(&list);
}

static void eh_frame_is_found_without_section_headers(void)
{
    elf_builder *b = new_with_text(62);
    elf_bytes *eh = elf_buffer(b), *header = elf_buffer(b);
    hfn_fde_list list = { NULL, 0, 0 };
    hotfn_image *image = NULL;
    hotfn_env env = hfn_env_fill(NULL);
    uint32_t section;

    put_fde(eh, put_plain_cie(eh), EH_FRAME, TEXT, 5, "", 0);
    put(eh, 0, 4);
    elf_add_buffer(b, ".eh_frame", 1, ELF_ALLOC, eh);
    put(header, 1, 1), put(header, 0x1b, 1), put(header, 3, 1), put(header, 0x3b, 1);
    put_align(&b->file, 16);
    put(header, EH_FRAME - (b->file.size + 4), 4);
    section = elf_add_buffer(b, ".eh_frame_hdr", 1, ELF_ALLOC, header);
    elf_segment_of(b, 0x6474e550, section);
    b->no_sections = true;
    elf_finish(b);
    CHECK_EQ_I64(hotfn_image_open_bytes(&image, b->file.data, b->file.size, "e", NULL, NULL),
                 HOTFN_OK);
    CHECK(hfn_bounds_eh_frame(&list, image, &env));
    CHECK_EQ_U64(list.count, 1);
    hfn_fde_list_finish(&list, &env);
    hotfn_image_close(image);
    free(b);
}

static const check_test tests[] = {
    CHECK_TEST(ranges_are_sorted_by_address),
    CHECK_TEST(an_fde_that_begins_inside_a_frame_is_marked),
    CHECK_TEST(instructions_after_an_advance_are_ignored),
    CHECK_TEST(rules_that_an_entry_may_have_do_not_mark_an_fde),
    CHECK_TEST(unknown_instructions_do_not_mark_an_fde),
    CHECK_TEST(signal_frames_and_language_data_are_flagged),
    CHECK_TEST(fdes_with_argument_sizes_keep_their_instructions),
    CHECK_TEST(an_argument_size_holds_from_its_offset_on),
    CHECK_TEST(other_encodings_are_read),
    CHECK_TEST(each_machine_has_its_own_entry_rule),
    CHECK_TEST(fdes_of_dropped_or_empty_functions_are_skipped),
    CHECK_TEST(damage_ends_the_reading_with_a_warning),
    CHECK_TEST(an_image_without_unwind_data_has_no_ranges),
    CHECK_TEST(eh_frame_is_found_without_section_headers),
};
CHECK_MAIN(tests)
