/* SPDX-License-Identifier: MIT */
/* Stub regions as ELF objects, for debuggers that read generated code from files in memory (gdb
 * manual, "JIT Compilation Interface").  The debugger reads such a file from the memory of the
 * process, beginning at the address of its header, so nothing is copied: the objects lie below the
 * regions, and their .eh_frame is the real one at its place. */
#include "arch/stub.h"

#include "base/byte_order.h"
#include "image/elf_numbers.h"
#include "os/memory.h"

#include <hotfn/lowlevel/hooks.h>
#include <stddef.h>
#include <string.h>

#define PAGE 4096u
#define MIN_ADDRESS 0x10000u /* the usual vm.mmap_min_addr */

enum { TEXT = 1, EH_FRAME, SYMTAB, STRTAB, SECTIONS, STUB_NAME = 33 };

static const char names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0hotfn:stub";

/* System V gABI, ch. 4, in this process's word size and byte order. */
typedef struct elf_header {
    uint8_t ident[16];
    uint16_t type, machine;
    uint32_t version;
    uintptr_t entry, program_headers_at, section_headers_at;
    uint32_t flags;
    uint16_t header_bytes, program_header_bytes, program_header_count;
    uint16_t section_header_bytes, section_header_count, name_section;
} elf_header;

typedef struct elf_section {
    uint32_t name, type;
    uintptr_t flags, address, offset, bytes;
    uint32_t link, info;
    uintptr_t alignment, entry_bytes;
} elf_section;

#if UINTPTR_MAX > 0xffffffffu
typedef struct elf_symbol {
    uint32_t name;
    uint8_t info, other;
    uint16_t section;
    uint64_t value, size;
} elf_symbol;
#else
typedef struct elf_symbol {
    uint32_t name, value, size;
    uint8_t info, other;
    uint16_t section;
} elf_symbol;
#endif

enum { VERSION_CURRENT = 1, CLASS_32 = 1, CLASS_64 = 2, GLOBAL_FUNCTION = 0x12 };

typedef struct region_object {
    elf_header header;
    elf_section sections[SECTIONS];
    elf_symbol symbols[2];
    char names[sizeof names];
} region_object;

static elf_section describe_section(uint32_t name, uint32_t type, uint64_t flags, uint64_t offset,
                                    uint64_t bytes)
{
    return (elf_section){ .name = name,
                          .type = type,
                          .flags = (uintptr_t)flags,
                          .offset = (uintptr_t)offset,
                          .bytes = (uintptr_t)bytes,
                          .alignment = 1 };
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

static void fill_header(elf_header *header)
{
    memcpy(header->ident, "\177ELF", 4);
    header->ident[4] = sizeof(void *) == 8 ? CLASS_64 : CLASS_32;
    header->ident[5] = HFN_HOST_BIG_ENDIAN ? 2 : 1;
    header->ident[6] = VERSION_CURRENT;
    header->type = HFN_ET_EXEC; /* its addresses are final */
    header->machine = hfn_stub_get_patching()->elf_machine;
    header->version = VERSION_CURRENT;
    header->header_bytes = sizeof *header;
    header->section_headers_at =
        offsetof(region_object, sections) - offsetof(region_object, header);
    header->section_header_bytes = sizeof(elf_section);
    header->section_header_count = SECTIONS;
    header->name_section = STRTAB;
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
    o->sections[TEXT] =
        describe_section(1, HFN_SHT_NOBITS, HFN_SHF_ALLOC | HFN_SHF_EXECINSTR, 0, code_bytes);
    o->sections[TEXT].address = region->begin;
    o->sections[EH_FRAME] =
        describe_section(7, HFN_SHT_PROGBITS, HFN_SHF_ALLOC, tables_at, tables_bytes);
    o->sections[EH_FRAME].address = tables; /* keeps relative references valid */
    o->sections[SYMTAB] = describe_section(
        17, HFN_SHT_SYMTAB, 0, offsetof(region_object, symbols) - file, sizeof o->symbols);
    o->sections[SYMTAB].link = STRTAB;
    o->sections[SYMTAB].info = 1; /* index of the first global symbol */
    o->sections[SYMTAB].entry_bytes = sizeof(elf_symbol);
    o->sections[STRTAB] = describe_section(25, HFN_SHT_STRTAB, 0,
                                           offsetof(region_object, names) - file, sizeof names);
    o->symbols[1] = (elf_symbol){ .name = STUB_NAME,
                                  .info = GLOBAL_FUNCTION,
                                  .section = TEXT,
                                  .value = (uintptr_t)region->begin,
                                  .size = (uintptr_t)code_bytes };
    return tables_at + tables_bytes;
}

/* Memory that ends at or below address, or NULL. */
static void *map_below(uint64_t address, size_t bytes)
{
    address &= ~(uint64_t)(PAGE - 1);
    for (uint64_t down = bytes; down + MIN_ADDRESS <= address; down *= 2) {
        if (hfn_os_map_at(address - down, bytes)) {
            return (void *)(uintptr_t)(address - down);
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
