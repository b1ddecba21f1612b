/* SPDX-License-Identifier: MIT */
/* The container of a PDB: whatever its tables contain, no byte is read twice or outside of the
 * file. */
#include "symbols/pdb_load.h"

static pdb_builder *built(void)
{
    pdb_builder *b = pdb_begin(512);

    put_everything(b);
    for (uint32_t i = 0; i < 60; i++) {
        procedure(b, MODULE_2, 0x1110, "of_several_blocks", 0x300 + i, 1);
    }
    pdb_finish(b);
    return b;
}

static void set_block(pdb_builder *b, int stream, uint32_t index, uint32_t block)
{
    set_32(b->file + directory_at(b, b->numbers_at[stream] + 4 * index), block);
}

static void a_block_of_two_streams_is_refused(void)
{
    pdb_builder *b = built();

    set_block(b, RECORDS, 0, b->first_block[MODULE]);
    refuse(b, "is used twice", directory_at(b, b->numbers_at[RECORDS]));
}

static void a_cyclic_stream_is_refused(void)
{
    pdb_builder *b = built();

    set_block(b, MODULE_2, 2, (uint32_t)(place(b, MODULE_2, 0) / 512));
    refuse(b, "is used twice", directory_at(b, b->numbers_at[MODULE_2] + 8));
}

static void a_block_outside_the_file_is_refused(void)
{
    pdb_builder *b = built();

    set_block(b, MODULE_2, 1, 0x7fffffff);
    refuse(b, "lies outside the file", directory_at(b, b->numbers_at[MODULE_2] + 4));
    b = built();
    set_block(b, MODULE_2, 1, 0);
    refuse(b, "block 0", directory_at(b, b->numbers_at[MODULE_2] + 4));
}

static void a_block_map_that_contains_itself_is_refused(void)
{
    pdb_builder *b = built();

    set_32(b->file + (uint64_t)b->map_block * 512, b->map_block);
    refuse(b, "is used twice", (uint64_t)b->map_block * 512);
    b = built();
    set_32(b->file + 52, 0xffffffff);
    refuse(b, "block map", 52);
    b = built();
    set_32(b->file + 52, 0);
    refuse(b, "block map", 52);
}

static void a_directory_of_a_wrong_size_is_refused(void)
{
    static const uint32_t sizes[] = { 0, 2, 0x7ffffffc, 0xffffffff };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pdb_builder *b = built();
        set_32(b->file + 44, sizes[i]);
        refuse(b, "stream directory cannot have", 44);
    }
}

static void a_stream_larger_than_its_blocks_is_refused(void)
{
    pdb_builder *b = built();

    set_32(b->file + directory_at(b, 4 + 4 * MODULE_2), 0xfffffffe);
    refuse(b, "more than its directory has blocks for", directory_at(b, 4 + 4 * MODULE_2));
    b = built();
    set_32(b->file + directory_at(b, 0), 0xffffffff);
    refuse(b, "too short for", directory_at(b, 0));
}

static void an_invalid_block_size_is_refused(void)
{
    static const uint32_t sizes[] = { 0, 1, 256, 513, 65536, 0x80000000 };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pdb_builder *b = built();
        set_32(b->file + 32, sizes[i]);
        refuse(b, "a block cannot have", 32);
    }
}

static void a_deleted_stream_does_not_exist(void)
{
    pdb_builder *b = built();

    set_32(b->file + directory_at(b, 4 + 4 * RECORDS), 0xffffffff);
    refuse(b, "does not exist", directory_at(b, 4 + 4 * RECORDS));
}

static const check_test tests[] = {
    CHECK_TEST(a_block_of_two_streams_is_refused),
    CHECK_TEST(a_cyclic_stream_is_refused),
    CHECK_TEST(a_block_outside_the_file_is_refused),
    CHECK_TEST(a_block_map_that_contains_itself_is_refused),
    CHECK_TEST(a_directory_of_a_wrong_size_is_refused),
    CHECK_TEST(a_stream_larger_than_its_blocks_is_refused),
    CHECK_TEST(an_invalid_block_size_is_refused),
    CHECK_TEST(a_deleted_stream_does_not_exist),
};
CHECK_MAIN(tests)
