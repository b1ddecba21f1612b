/* SPDX-License-Identifier: MIT */
/* This system cannot create or change code: every function fails. */
#include "os/code_memory.h"

uint64_t hfn_os_map_near(uint64_t near_begin, uint64_t near_end, uint64_t byte_count,
                         uint64_t range_bytes)
{
    (void)near_begin;
    (void)near_end;
    (void)byte_count;
    (void)range_bytes;
    return 0;
}

uint32_t hfn_os_find_gaps(uint64_t begin, uint64_t end, hfn_os_gap *out, uint32_t capacity)
{
    (void)begin;
    (void)end;
    (void)out;
    (void)capacity;
    return 0;
}

bool hfn_os_make_executable(uint64_t address, uint64_t byte_count)
{
    (void)address;
    (void)byte_count;
    return false;
}

bool hfn_os_open_text(hfn_os_writable_text *text, uint64_t begin, uint64_t end)
{
    (void)text;
    (void)begin;
    (void)end;
    return false;
}

void hfn_os_populate_text(const hfn_os_writable_text *text, uint64_t begin, uint64_t end)
{
    (void)text;
    (void)begin;
    (void)end;
}

void hfn_os_write_text(hfn_os_writable_text *text, uint64_t address, const uint8_t *bytes,
                       uint32_t byte_count)
{
    (void)text;
    (void)address;
    (void)bytes;
    (void)byte_count;
}

void hfn_os_close_text(hfn_os_writable_text *text)
{
    (void)text;
}
