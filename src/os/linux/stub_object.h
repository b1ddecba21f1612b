/* SPDX-License-Identifier: MIT */
/* A region of stubs as unwinders see it: an object with two program headers, its code and its
 * .eh_frame_hdr.  Used by the agent and by the core of attached processes, which has no libc. */
#ifndef HFN_OS_LINUX_STUB_OBJECT_H
#define HFN_OS_LINUX_STUB_OBJECT_H

#include <link.h>
#include <stdint.h>

typedef struct hfn_stub_object {
    ElfW(Phdr) headers[2];
    struct dl_phdr_info info;
} hfn_stub_object;

/* Precondition: all bytes of out are 0. */
static inline void hfn_describe_stubs(hfn_stub_object *out, uint64_t begin, uint64_t end,
                                      uint64_t eh_frame_hdr)
{
    out->headers[0].p_type = PT_LOAD;
    out->headers[0].p_flags = PF_R | PF_X;
    out->headers[0].p_vaddr = (ElfW(Addr))begin;
    out->headers[0].p_memsz = (ElfW(Addr))(end - begin);
    out->headers[1].p_type = PT_GNU_EH_FRAME;
    out->headers[1].p_flags = PF_R;
    out->headers[1].p_vaddr = (ElfW(Addr))eh_frame_hdr;
    out->headers[1].p_memsz = 8;
    out->info.dlpi_name = "[hotfn stubs]";
    out->info.dlpi_phdr = out->headers;
    out->info.dlpi_phnum = 2;
}

#endif
