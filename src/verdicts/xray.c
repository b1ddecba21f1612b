/* SPDX-License-Identifier: MIT */
/*
 * XRay (clang -fxray-instrument): its runtime overwrites sleds, no-ops at entries and exits, while
 * the program runs, and would overwrite a patch.  The section xray_instr_map lists the sleds (LLVM,
 * InstrumentationMap.cpp and XRaySledEntry: 32 bytes on 64-bit systems).  From version 2 on, which
 * LLVM writes since release 11, an address is relative to its own field.
 */
#include "verdicts/analysis.h"

#define ENTRY_BYTES 32u
#define VERSION_AT 18u
#define FIRST_RELATIVE_VERSION 2u
#define SLED_BYTES_X86 11u   /* mov r10d, number; call trampoline (LLVM, xray_x86_64.cpp)      */
#define SLED_BYTES_ARM64 32u /* a branch and seven no-ops (LLVM, xray_AArch64.cpp)             */

void hfn_xray_prepare(hfn_analysis *a)
{
    const hfn_elf_section *section = hfn_elf_section_named(a->image, "xray_instr_map");
    uint32_t sled_bytes = a->arch == &hfn_arch_arm64 ? SLED_BYTES_ARM64 : SLED_BYTES_X86;

    if (!section || a->info.bits != 64) {
        return;
    }
    hfn_span bytes = hfn_elf_section_bytes(a->image, section);
    for (uint64_t at = 0; hfn_span_has(bytes, at, ENTRY_BYTES); at += ENTRY_BYTES) {
        uint64_t address = 0, rva = 0;
        hfn_span_u64(bytes, at, &address);
        if (bytes.data[at + VERSION_AT] >= FIRST_RELATIVE_VERSION) {
            address += section->address + at;
        }
        if (hfn_image_rva(a->image, address, &rva)) {
            hfn_fixed_add(a, rva, rva + sled_bytes, HOTFN_REASON_RUNTIME_READS);
        }
    }
}
