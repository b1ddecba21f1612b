/* SPDX-License-Identifier: MIT */
/* Headers and section tables: written ones are read back, damaged ones are rejected with the
 * offset. */
#include "live/layout.h"

#include "check.h"

#define ROOM 2048u
#define FILE_BYTES 10000u

static uint8_t header[ROOM];

static hfn_layout sample_layout(void)
{
    hfn_layout layout = { .kind = HFN_KIND_FINISHED, .row_bytes = 4096, .file_bytes = FILE_BYTES };

    layout.sections[HFN_SECTION_META] = (hfn_section){ HFN_SECTION_META, 0, 1000, 50, 0, 0, 0 };
    layout.sections[HFN_SECTION_SLOTS] = (hfn_section){
        HFN_SECTION_SLOTS, HFN_SECTION_CRITICAL | HFN_SECTION_HAS_CRC, 2000, 40, 4, 0x1234, 10
    };
    return layout;
}

static void write_header(const hfn_layout *layout)
{
    memset(header, 0, sizeof header);
    hfn_write_le32(header + HFN_AT_STATE, HOTFN_RECORD_FINISHED);
    hfn_header_seal(header);
    hfn_header_write(header, layout, (const uint8_t *)"0123456789abcdef", 77);
}

static hotfn_status read_back(hfn_layout *out, hotfn_error *err)
{
    return hfn_header_read(out, (hfn_span){ header, sizeof header, false }, FILE_BYTES, false,
                           "r.hfr", err);
}

static void header_is_read_back(void)
{
    hfn_layout wanted = sample_layout(), found;

    write_header(&wanted);
    CHECK_EQ_I64(read_back(&found, NULL), HOTFN_OK);
    CHECK_MEM(&found, &wanted, sizeof found);
    CHECK_EQ_U64(hfn_read_le64(header + HFN_AT_START_NS), 77);
    CHECK_EQ_U64(hfn_header_bytes(&wanted), HFN_HEADER_BYTES + 2 * HFN_ENTRY_BYTES);
}

static void every_changed_byte_of_a_header_is_detected(void)
{
    hfn_layout layout = sample_layout(), found;

    for (uint32_t i = 0; i < hfn_header_bytes(&layout); i++) {
        hotfn_error err = HOTFN_ERROR_INIT;

        write_header(&layout);
        header[i] ^= 0x10;
        if (read_back(&found, &err) == HOTFN_OK || !err.text[0]) {
            CHECK_EQ_U64(i, UINT32_MAX);
        }
    }
}

static void another_version_or_byte_order_is_a_mismatch(void)
{
    hfn_layout layout = sample_layout(), found;
    hotfn_error err = HOTFN_ERROR_INIT;

    write_header(&layout);
    hfn_write_le32(header + HFN_AT_MAJOR, HFN_RECORD_MAJOR + 1);
    CHECK_EQ_I64(read_back(&found, &err), HOTFN_E_MISMATCH);
    CHECK_EQ_U64(err.offset, HFN_AT_MAJOR);
    write_header(&layout);
    hfn_write_le32(header + HFN_AT_ENDIAN, HFN_SWAP32(HFN_RECORD_ENDIAN));
    CHECK_EQ_I64(read_back(&found, &err), HOTFN_E_MISMATCH);
}

static hotfn_status read_section(hfn_section section, hotfn_error *err)
{
    hfn_layout layout = sample_layout(), found;

    layout.sections[HFN_SECTION_SLOTS] = section;
    write_header(&layout);
    return read_back(&found, err);
}

static void unknown_sections_are_ignored_unless_critical(void)
{
    CHECK_EQ_I64(read_section((hfn_section){ 999, 0, 0, 8, 1, 0, 0 }, NULL), HOTFN_OK);
    CHECK_EQ_I64(read_section((hfn_section){ 999, HFN_SECTION_CRITICAL, 0, 8, 1, 0, 0 }, NULL),
                 HOTFN_E_MISMATCH);
}

static void sections_outside_of_the_file_are_rejected(void)
{
    hotfn_error err = HOTFN_ERROR_INIT;

    CHECK_EQ_I64(
        read_section((hfn_section){ HFN_SECTION_SLOTS, 0, FILE_BYTES - 4, 8, 4, 0, 2 }, &err),
        HOTFN_E_FORMAT);
    CHECK(strstr(err.text, "hotfn repair") != NULL);
    CHECK_EQ_I64(
        read_section((hfn_section){ HFN_SECTION_SLOTS, 0, UINT64_MAX - 3, 8, 4, 0, 2 }, NULL),
        HOTFN_E_FORMAT);
    CHECK_EQ_I64(read_section((hfn_section){ HFN_SECTION_SLOTS, 0, 8, UINT64_MAX, 4, 0, 2 }, NULL),
                 HOTFN_E_FORMAT);
}

static void sections_with_wrong_element_counts_are_rejected(void)
{
    CHECK_EQ_I64(read_section((hfn_section){ HFN_SECTION_SLOTS, 0, 8, 8, 4, 0, 3 }, NULL),
                 HOTFN_E_FORMAT);
    CHECK_EQ_I64(
        read_section(
            (hfn_section){ HFN_SECTION_SLOTS, 0, 8, 8, 4, 0, UINT64_C(0x4000000000000001) }, NULL),
        HOTFN_E_FORMAT);
    CHECK_EQ_I64(read_section((hfn_section){ HFN_SECTION_SLOTS, 0, 8, 8, 8, 0, 1 }, NULL),
                 HOTFN_E_FORMAT);
    CHECK_EQ_I64(read_section((hfn_section){ HFN_SECTION_META, 0, 8, 8, 0, 0, 0 }, NULL),
                 HOTFN_E_FORMAT); /* a second section of its type */
}

static const check_test tests[] = {
    CHECK_TEST(header_is_read_back),
    CHECK_TEST(every_changed_byte_of_a_header_is_detected),
    CHECK_TEST(another_version_or_byte_order_is_a_mismatch),
    CHECK_TEST(unknown_sections_are_ignored_unless_critical),
    CHECK_TEST(sections_outside_of_the_file_are_rejected),
    CHECK_TEST(sections_with_wrong_element_counts_are_rejected),
};
CHECK_MAIN(tests)
