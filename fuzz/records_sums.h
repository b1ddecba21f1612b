/* SPDX-License-Identifier: MIT */
/* Corrects a record's checksums, so that a fuzzer reaches the checks after them. */
#ifndef HFN_FUZZ_RECORDS_SUMS_H
#define HFN_FUZZ_RECORDS_SUMS_H

#include "base/crc32c.h"
#include "live/layout.h"

#include <stddef.h>

static inline void make_sums_right(uint8_t *bytes, size_t size)
{
    size_t count, i;

    if (size < HFN_HEADER_BYTES) {
        return;
    }
    count = hfn_read_le32(bytes + HFN_AT_SECTION_COUNT) % 64;
    if (size < HFN_HEADER_BYTES + count * HFN_ENTRY_BYTES) {
        return;
    }
    hfn_write_le32(bytes + HFN_AT_SECTION_COUNT, (uint32_t)count);
    for (i = 0; i < count; i++) {
        uint8_t *entry = bytes + HFN_HEADER_BYTES + i * HFN_ENTRY_BYTES;
        uint32_t flags = hfn_read_le32(entry + HFN_ENTRY_FLAGS);

        hfn_write_le32(entry + HFN_ENTRY_FLAGS, flags & ~HFN_SECTION_HAS_CRC);
    }
    hfn_header_seal(bytes);
    hfn_write_le32(bytes + HFN_AT_STATIC_CRC,
                   hfn_compute_crc32c(hfn_compute_crc32c(0, bytes, HFN_AT_STATIC_CRC),
                                      bytes + HFN_HEADER_BYTES, count * HFN_ENTRY_BYTES));
}

#endif
