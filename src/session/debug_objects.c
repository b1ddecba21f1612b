/* SPDX-License-Identifier: MIT */
/* Stub regions as ELF objects, for debuggers that read generated code from files in memory (gdb manual,
 * "JIT Compilation Interface").  The debugger reads such a file from the memory of the process, beginning at
 * the address of its header, so nothing is copied: the objects lie below the regions, and their .eh_frame is
 * the real one at its place. */
#include "arch/stub.h"

#include "base/byte_order.h"

#include <elf.h>
#include <hotfn/lowlevel/hooks.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u
#define LOWEST_ADDRESS 0x10000u /* the usual vm.mmap_min_addr */

enum { TEXT = 1, EH_FRAME, SYMTAB, STRTAB, SECTIONS, STUB_NAME = 33 };

static const char names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0hotfn:stub";

typedef struct region_object {
    ElfW(Ehdr) header;
    ElfW(Shdr) sections[SECTIONS];
    ElfW(Sym) symbols[2];
    char names[sizeof names];
} region_object;

static ElfW(Shdr)
    describe_section(uint32_t name, uint32_t type, uint64_t flags, uint64_t offset, uint64_t bytes)
{
    return (ElfW(Shdr)){ .sh_name = name,
                         .sh_type = type,
                         .sh_flags = flags,
                         .sh_offset = offset,
                         .sh_size = bytes,
                         .sh_addralign = 1 };
}

/* Entries follow each other, each after its length; a length of 0 is the end. */
static uint64_t count_eh_frame_bytes(const uint8_t *begin)
{
    const uint8_t *at = begin;
    uint32_t length;
    do {
        length = hfn_read_le32(at);
        at += sizeof length + length;
    } while (length != 0);
    return (uint64_t)(at - begin);
}

static void fill_header(ElfW(Ehdr) * header)
{
    memcpy(header->e_ident, ELFMAG, SELFMAG);
    header->e_ident[EI_CLASS] = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    header->e_ident[EI_DATA] = ELFDATA2LSB;
    header->e_ident[EI_VERSION] = EV_CURRENT;
    header->e_type = ET_EXEC; /* its addresses are final */
    header->e_machine = hfn_stub_get_patching()->elf_machine;
    header->e_version = EV_CURRENT;
    header->e_ehsize = sizeof *header;
    header->e_shoff = offsetof(region_object, sections) - offsetof(region_object, header);
    header->e_shentsize = sizeof(ElfW(Shdr));
    header->e_shnum = SECTIONS;
    header->e_shstrndx = STRTAB;
}

/* Returns the bytes of the file, up to the end of the unwind tables. */
static uint64_t fill_object(region_object *o, const hotfn_stub_region *region)
{
    const size_t file = offsetof(region_object, header);
    uint64_t code_bytes = region->end - region->begin,
             tables = (uint64_t)(uintptr_t)region->eh_frame;
    uint64_t tables_at = tables - (uint64_t)(uintptr_t)&o->header;
    uint64_t tables_bytes = count_eh_frame_bytes(region->eh_frame);

    fill_header(&o->header);
    memcpy(o->names, names, sizeof names);
    o->sections[TEXT] = describe_section(1, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0, code_bytes);
    o->sections[TEXT].sh_addr = region->begin;
    o->sections[EH_FRAME] = describe_section(7, SHT_PROGBITS, SHF_ALLOC, tables_at, tables_bytes);
    o->sections[EH_FRAME].sh_addr = tables; /* keeps relative references valid */
    o->sections[SYMTAB] = describe_section(
        17, SHT_SYMTAB, 0, offsetof(region_object, symbols) - file, sizeof o->symbols);
    o->sections[SYMTAB].sh_link = STRTAB;
    o->sections[SYMTAB].sh_info = 1; /* index of the first global symbol */
    o->sections[SYMTAB].sh_entsize = sizeof(ElfW(Sym));
    o->sections[STRTAB] =
        describe_section(25, SHT_STRTAB, 0, offsetof(region_object, names) - file, sizeof names);
    o->symbols[1] = (ElfW(Sym)){ .st_name = STUB_NAME,
                                 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                 .st_shndx = TEXT,
                                 .st_value = region->begin,
                                 .st_size = code_bytes };
    return tables_at + tables_bytes;
}

/* Memory that ends at or below address, or NULL. */
static void *map_below(uint64_t address, size_t bytes)
{
    address &= ~(uint64_t)(PAGE - 1);
    for (uint64_t down = bytes; down + LOWEST_ADDRESS <= address; down *= 2) {
        void *wanted = (void *)(uintptr_t)(address - down);
        void *got = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (got == wanted) {
            return got;
        }
        if (got != MAP_FAILED) { /* before Linux 4.17 the address is only a hint */
            munmap(got, bytes);
        }
    }
    return NULL;
}

uint32_t hotfn_hooks_debug_objects(const hotfn_hooks *hooks, const void **objects,
                                   uint64_t *byte_counts, uint32_t capacity)
{
    if (!hooks || !objects || !byte_counts) {
        return 0;
    }

    uint32_t regions = hotfn_hooks_get_region_count(hooks), count = 0;
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    region_object *objects_begin = NULL;

    regions = regions < capacity ? regions : capacity;
    if (regions > 0 && hotfn_hooks_get_region(hooks, 0, &region) == HOTFN_OK) { /* the lowest */
        objects_begin = map_below(region.begin, (regions * sizeof *objects_begin + PAGE - 1) &
                                                    ~(size_t)(PAGE - 1));
    }
    for (uint32_t i = 0; objects_begin && i < regions; i++) {
        if (hotfn_hooks_get_region(hooks, i, &region) == HOTFN_OK && region.eh_frame) {
            byte_counts[count] = fill_object(&objects_begin[i], &region);
            objects[count++] = &objects_begin[i].header;
        }
    }
    return count;
}
