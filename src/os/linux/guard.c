/* SPDX-License-Identifier: MIT */
/*
 * AArch64's PROT_BTI allows indirect branches only to landing pads.  mprotect removes it unless it
 * is requested again, and /proc/self/maps does not show it.  The loader sets it for all code of a
 * module whose note declares landing pads, if the processor enforces them (glibc, _dl_bti_protect;
 * 'ELF for the Arm 64-bit Architecture', GNU_PROPERTY_AARCH64_FEATURE_1_AND); this file applies the
 * same rule.
 */
#include "os/linux/guard.h"

#if defined(__aarch64__)

#include "base/byte_order.h"
#include "os/os.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#define GUARD 0x10                   /* PROT_BTI */
#define PROCESSOR_GUARDS (1ul << 17) /* HWCAP2_BTI */
#define PROPERTY_HEADERS 0x6474e553u /* PT_GNU_PROPERTY */
#define FEATURES 0xc0000000u
enum { NOTE_PROPERTY = 5, NOTE_HEAD_BYTES = 16, PROPERTY_HEAD_BYTES = 8 };

typedef struct search {
    uint64_t begin, end;
    bool guarded;
} search;

/* One note: sizes of name and description, type, "GNU", then properties of 8 bytes and more. */
static bool has_guard_property(const uint8_t *note, uint64_t bytes)
{
    uint64_t at = NOTE_HEAD_BYTES, end;

    if (bytes < NOTE_HEAD_BYTES || hfn_read_le32(note) != 4 ||
        hfn_read_le32(note + 8) != NOTE_PROPERTY || memcmp(note + 12, "GNU", 4) != 0) {
        return false;
    }
    end = NOTE_HEAD_BYTES + (uint64_t)hfn_read_le32(note + 4);
    end = end < bytes ? end : bytes;
    while (at + PROPERTY_HEAD_BYTES + 4 <= end) {
        if (hfn_read_le32(note + at) == FEATURES) {
            return hfn_read_le32(note + at + PROPERTY_HEAD_BYTES) & 1;
        }
        at += PROPERTY_HEAD_BYTES + (((uint64_t)hfn_read_le32(note + at + 4) + 7) & ~UINT64_C(7));
    }
    return false;
}

static bool check_module(void *user, const hfn_os_module *module)
{
    search *s = user;
    const ElfW(Ehdr) *head = (const void *)(uintptr_t)module->base;
    const ElfW(Phdr) *headers = (const void *)(uintptr_t)(module->base + head->e_phoff);

    if (s->begin < module->base || s->end > ((module->end + 0xfff) & ~UINT64_C(0xfff))) {
        return true;
    }
    for (uint32_t i = 0; i < head->e_phnum; i++) {
        if (headers[i].p_type == PROPERTY_HEADERS &&
            module->load_bias + headers[i].p_vaddr + headers[i].p_memsz <= module->end) {
            s->guarded = has_guard_property(
                (const uint8_t *)(uintptr_t)(module->load_bias + headers[i].p_vaddr),
                headers[i].p_memsz);
        }
    }
    return false;
}

int hfn_linux_guard_of(uint64_t begin, uint64_t end)
{
    search s = { begin, end, false };

    if (getauxval(AT_HWCAP2) & PROCESSOR_GUARDS) {
        hfn_os_each_module(check_module, &s);
    }
    return s.guarded ? GUARD : 0;
}

#else

int hfn_linux_guard_of(uint64_t begin, uint64_t end)
{
    (void)begin;
    (void)end;
    return 0;
}

#endif
