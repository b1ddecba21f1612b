/* SPDX-License-Identifier: MIT */
/* Answers for gdb, which asks no unwinder of ours: a small ELF object in memory for each region of
 * stubs, told by gdb's interface for generated code (gdb manual, "JIT Compilation Interface").
 * Nothing is copied: gdb takes an object for a file that begins at its address, and reads pieces of it
 * from our memory.  So the object lies below its region, and .eh_frame is the real one, where it is. */
#include "agent.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))
#define PAGE 4096u
#define LOWEST_ADDRESS 0x10000u /* the usual vm.mmap_min_addr */

/* ---- What gdb looks for by name; layout and numbers are the manual's. */

enum { JIT_REGISTER = 1 };

struct jit_code_entry {
    struct jit_code_entry *next, *previous;
    const void *object;
    uint64_t byte_count;
};

EXPORT extern struct jit_descriptor {
    uint32_t version, action;
    struct jit_code_entry *relevant, *first;
} __jit_debug_descriptor;
struct jit_descriptor __jit_debug_descriptor = { 1, 0, NULL, NULL };

EXPORT void __jit_debug_register_code(void);

/* gdb has a breakpoint here.  The barrier keeps the stores before the calls, and the calls. */
__attribute__((noinline)) void __jit_debug_register_code(void)
{
    __asm__ volatile("" ::: "memory");
}

/* ---- One object a region. */

enum { TEXT = 1, EH_FRAME, SYMTAB, STRTAB, SECTIONS, STUB_NAME = 33 };

static const char names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0hotfn:stub";

typedef struct region_object {
    struct jit_code_entry entry;
    Elf64_Ehdr header;
    Elf64_Shdr sections[SECTIONS];
    Elf64_Sym symbols[2];
    char names[sizeof names];
} region_object;

static Elf64_Shdr section(uint32_t name, uint32_t type, uint64_t flags, uint64_t offset,
                          uint64_t bytes)
{
    return (Elf64_Shdr){ .sh_name = name,
                         .sh_type = type,
                         .sh_flags = flags,
                         .sh_offset = offset,
                         .sh_size = bytes,
                         .sh_addralign = 1 };
}

/* The entries follow each other, each behind its length; a length of 0 ends them. */
static uint64_t eh_frame_bytes(const uint8_t *begin)
{
    const uint8_t *at = begin;
    uint32_t length;
    do {
        memcpy(&length, at, sizeof length);
        at += sizeof length + length;
    } while (length != 0);
    return (uint64_t)(at - begin);
}

static void fill_header(Elf64_Ehdr *header)
{
    memcpy(header->e_ident, ELFMAG, SELFMAG);
    header->e_ident[EI_CLASS] = ELFCLASS64;
    header->e_ident[EI_DATA] = ELFDATA2LSB;
    header->e_ident[EI_VERSION] = EV_CURRENT;
    header->e_type = ET_EXEC; /* its addresses are final */
    header->e_machine = EM_X86_64;
    header->e_version = EV_CURRENT;
    header->e_ehsize = sizeof *header;
    header->e_shoff = offsetof(region_object, sections) - offsetof(region_object, header);
    header->e_shentsize = sizeof(Elf64_Shdr);
    header->e_shnum = SECTIONS;
    header->e_shstrndx = STRTAB;
}

static void fill_object(region_object *o, const hotfn_stub_region *region)
{
    const size_t file = offsetof(region_object, header);
    uint64_t code_bytes = region->end - region->begin,
             tables = (uint64_t)(uintptr_t)region->eh_frame;
    uint64_t tables_at = tables - (uint64_t)(uintptr_t)&o->header;
    uint64_t tables_bytes = eh_frame_bytes(region->eh_frame);

    fill_header(&o->header);
    memcpy(o->names, names, sizeof names);
    o->sections[TEXT] = section(1, SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0, code_bytes);
    o->sections[TEXT].sh_addr = region->begin;
    o->sections[EH_FRAME] = section(7, SHT_PROGBITS, SHF_ALLOC, tables_at, tables_bytes);
    o->sections[EH_FRAME].sh_addr = tables; /* what is relative to it stays right */
    o->sections[SYMTAB] =
        section(17, SHT_SYMTAB, 0, offsetof(region_object, symbols) - file, sizeof o->symbols);
    o->sections[SYMTAB].sh_link = STRTAB;
    o->sections[SYMTAB].sh_info = 1; /* the first that is not local */
    o->sections[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
    o->sections[STRTAB] =
        section(25, SHT_STRTAB, 0, offsetof(region_object, names) - file, sizeof names);
    o->symbols[1] = (Elf64_Sym){ .st_name = STUB_NAME,
                                 .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                                 .st_shndx = TEXT,
                                 .st_value = region->begin,
                                 .st_size = code_bytes };
    o->entry.object = &o->header;
    o->entry.byte_count = tables_at + tables_bytes;
}

static void tell(region_object *o)
{
    struct jit_code_entry *first = __jit_debug_descriptor.first;
    o->entry.next = first;
    if (first) {
        first->previous = &o->entry;
    }
    __jit_debug_descriptor.first = __jit_debug_descriptor.relevant = &o->entry;
    __jit_debug_descriptor.action = JIT_REGISTER;
    __jit_debug_register_code();
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
        if (got != MAP_FAILED) { /* Linux before 4.17 takes the address for a hint */
            munmap(got, bytes);
        }
    }
    return NULL;
}

void agent_tell_debuggers(void)
{
    void *paused = hotfn_counters_pause(); /* mmap may be hooked */
    const hotfn_hooks *hooks = agent_hooks();
    uint32_t count = hooks ? hotfn_hooks_region_count(hooks) : 0;
    hotfn_stub_region region = HOTFN_STUB_REGION_INIT;
    region_object *objects = NULL;
    if (count > 0 && hotfn_hooks_get_region(hooks, 0, &region) == HOTFN_OK) { /* the lowest */
        objects =
            map_below(region.begin, (count * sizeof *objects + PAGE - 1) & ~(size_t)(PAGE - 1));
    }
    for (uint32_t i = 0; objects && i < count; i++) {
        if (hotfn_hooks_get_region(hooks, i, &region) == HOTFN_OK && region.eh_frame) {
            fill_object(&objects[i], &region);
            tell(&objects[i]);
        }
    }
    hotfn_counters_resume(paused);
}
