/* SPDX-License-Identifier: MIT */
/* The numbers of the ELF format that the loaders use, so that they compile on hosts without
 * <elf.h>. Sources: System V gABI ch. 4 and 5 (SHT, SHF, STT, PT, DT, RELR); LSB core, GNU
 * extensions (GNU_HASH, EH_FRAME, IFUNC, versions); the psABIs of the four machines
 * (relocations). */
#ifndef HFN_IMAGE_ELF_NUMBERS_H
#define HFN_IMAGE_ELF_NUMBERS_H

enum { HFN_ET_REL = 1, HFN_ET_EXEC = 2, HFN_ET_DYN = 3, HFN_ET_CORE = 4 };

enum { HFN_EM_386 = 3, HFN_EM_ARM = 40, HFN_EM_X86_64 = 62, HFN_EM_AARCH64 = 183 };

enum {
    HFN_SHN_UNDEF = 0,
    HFN_SHN_ABS = 0xfff1,
    HFN_SHN_COMMON = 0xfff2,
    HFN_SHN_XINDEX = 0xffff,
    HFN_PN_XNUM = 0xffff,
};

enum {
    HFN_SHT_PROGBITS = 1,
    HFN_SHT_SYMTAB = 2,
    HFN_SHT_STRTAB = 3,
    HFN_SHT_RELA = 4,
    HFN_SHT_NOTE = 7,
    HFN_SHT_NOBITS = 8,
    HFN_SHT_REL = 9,
    HFN_SHT_DYNSYM = 11,
    HFN_SHT_SYMTAB_SHNDX = 18,
};

enum {
    HFN_SHF_WRITE = 1,
    HFN_SHF_ALLOC = 2,
    HFN_SHF_EXECINSTR = 4,
    HFN_SHF_TLS = 0x400,
    HFN_SHF_COMPRESSED = 0x800,
};

enum { HFN_PT_LOAD = 1, HFN_PT_DYNAMIC = 2, HFN_PT_INTERP = 3, HFN_PT_NOTE = 4 };
#define HFN_PT_GNU_EH_FRAME 0x6474e550u
enum { HFN_PF_X = 1, HFN_PF_W = 2 };

enum {
    HFN_DT_NULL = 0,
    HFN_DT_PLTRELSZ = 2,
    HFN_DT_PLTGOT = 3,
    HFN_DT_HASH = 4,
    HFN_DT_STRTAB = 5,
    HFN_DT_SYMTAB = 6,
    HFN_DT_RELA = 7,
    HFN_DT_RELASZ = 8,
    HFN_DT_STRSZ = 10,
    HFN_DT_INIT = 12,
    HFN_DT_FINI = 13,
    HFN_DT_REL = 17,
    HFN_DT_RELSZ = 18,
    HFN_DT_PLTREL = 20,
    HFN_DT_TEXTREL = 22,
    HFN_DT_JMPREL = 23,
    HFN_DT_INIT_ARRAY = 25,
    HFN_DT_FINI_ARRAY = 26,
    HFN_DT_INIT_ARRAYSZ = 27,
    HFN_DT_FINI_ARRAYSZ = 28,
    HFN_DT_FLAGS = 30,
    HFN_DT_PREINIT_ARRAY = 32,
    HFN_DT_PREINIT_ARRAYSZ = 33,
    HFN_DT_RELRSZ = 35,
    HFN_DT_RELR = 36,
    HFN_DT_GNU_HASH = 0x6ffffef5,
    HFN_DT_VERSYM = 0x6ffffff0,
    HFN_DT_VERDEF = 0x6ffffffc,
};
enum { HFN_DF_TEXTREL = 4 };

enum {
    HFN_STT_NOTYPE = 0,
    HFN_STT_OBJECT = 1,
    HFN_STT_FUNC = 2,
    HFN_STT_SECTION = 3,
    HFN_STT_FILE = 4,
    HFN_STT_GNU_IFUNC = 10,
};
enum { HFN_STB_LOCAL = 0, HFN_STB_WEAK = 2 }; /* all other bindings are kinds of global */
enum { HFN_STV_INTERNAL = 1, HFN_STV_HIDDEN = 2 };

enum { HFN_NT_GNU_BUILD_ID = 3 };

#endif
