/* SPDX-License-Identifier: MIT */
/* The numbers of the PE format that the loaders use.  Source: Microsoft's 'PE Format' page, by the
 * headings of the same names; the load configuration by 'IMAGE_LOAD_CONFIG_DIRECTORY'. */
#ifndef HFN_IMAGE_PE_NUMBERS_H
#define HFN_IMAGE_PE_NUMBERS_H

enum { HFN_PE32 = 0x10b, HFN_PE32_PLUS = 0x20b };

enum {
    HFN_PE_MACHINE_I386 = 0x14c,
    HFN_PE_MACHINE_ARMNT = 0x1c4,
    HFN_PE_MACHINE_AMD64 = 0x8664,
    HFN_PE_MACHINE_ARM64 = 0xaa64,
};

enum { /* file header, Characteristics */
       HFN_PE_RELOCS_STRIPPED = 1,
       HFN_PE_EXECUTABLE_IMAGE = 2,
       HFN_PE_DLL = 0x2000,
};

#define HFN_PE_SECTION_EXECUTE 0x20000000u
#define HFN_PE_SECTION_WRITE 0x80000000u

enum { HFN_PE_DEBUG_CODEVIEW = 2 };

enum { /* base relocations: the high four bits of an entry */
       HFN_PE_RELOC_HIGH = 1,
       HFN_PE_RELOC_LOW = 2,
       HFN_PE_RELOC_HIGHLOW = 3,
       HFN_PE_RELOC_HIGHADJ = 4,
       HFN_PE_RELOC_ARM_MOV32 = 5,
       HFN_PE_RELOC_THUMB_MOV32 = 7,
       HFN_PE_RELOC_DIR64 = 10,
};

#endif
