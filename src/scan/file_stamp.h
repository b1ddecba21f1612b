/* SPDX-License-Identifier: MIT */
/* What tells a file from another one: a build that was written over, or deleted and made anew, often has
 * the device and the inode of the one before. */
#ifndef HFN_FILE_STAMP_H
#define HFN_FILE_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define HFN_STAMP_BEGIN 0xcbf29ce484222325ull

/* FNV-1a */
static inline uint64_t hfn_stamp_mix(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *p = bytes;

    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ p[i]) * 0x100000001b3ull;
    }
    return hash;
}

/* Size and times; nobody sets the time of change back. */
static inline uint64_t hfn_file_stamp(const struct stat *file)
{
    uint64_t facts[] = { (uint64_t)file->st_size, (uint64_t)file->st_mtim.tv_sec,
                         (uint64_t)file->st_mtim.tv_nsec, (uint64_t)file->st_ctim.tv_sec,
                         (uint64_t)file->st_ctim.tv_nsec };

    return hfn_stamp_mix(HFN_STAMP_BEGIN, facts, sizeof facts);
}

/* A file may change twice within one tick of the clock that its times are taken from (10 ms where HZ is 100):
 * a stamp taken before that is over does not tell the second change. */
static inline bool hfn_file_is_settled(const struct stat *file)
{
    const int64_t tick_ns = 20000000;
    struct timespec now;
    int64_t age_s;

    clock_gettime(CLOCK_REALTIME, &now);
    age_s = (int64_t)now.tv_sec - (int64_t)file->st_ctim.tv_sec;
    return age_s < 0 || age_s > 1 ||
           age_s * 1000000000 + now.tv_nsec - file->st_ctim.tv_nsec > tick_ns;
}

#endif
