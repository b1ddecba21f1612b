/* SPDX-License-Identifier: MIT */
/* A stamp distinguishes two files with the same device and inode, which is common if a build
 * overwrites a file, or deletes it and creates it again. */
#ifndef HFN_SCAN_FILE_STAMP_H
#define HFN_SCAN_FILE_STAMP_H

#include "base/hash.h"
#include "os/clock.h"
#include "os/files.h"

/* A hash of size and times, including the time of the last status change, which no program can
 * set. */
static inline uint64_t hfn_file_stamp(const hfn_os_file_info *file)
{
    uint64_t facts[] = { file->byte_count, file->modified_s, file->modified_ns, file->changed_s,
                         file->changed_ns };

    return hfn_hash_bytes(HFN_HASH_BEGIN, facts, sizeof facts);
}

/* File times advance in ticks (10 ms where HZ is 100).  A stamp that is taken within the tick of
 * the last change is not reliable, because it would not reveal another change in that tick. */
static inline bool hfn_file_stamp_is_reliable(const hfn_os_file_info *file)
{
    const uint64_t tick_ns = 20000000;
    uint64_t changed_ns = file->changed_s * 1000000000u + file->changed_ns;
    uint64_t now_ns = hfn_os_wall_ns();

    return changed_ns / 1000000000u > now_ns / 1000000000u || now_ns > changed_ns + tick_ns;
}

#endif
