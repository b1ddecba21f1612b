/* SPDX-License-Identifier: MIT */
/* A program whose own code cannot be made writable, as under a W^X policy. While the program is
 * relocated (-z now), before any constructor runs, an ifunc resolver in its library (-DLIBRARY)
 * maps the program's text again, shared, from a file that is open for reading only. Both
 * mprotect and a write through /proc/self/mem are then refused. */
#define _GNU_SOURCE
#include <stdio.h>

long sealed(void);

#ifdef LIBRARY
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static long yes(void) { return 1; }
static long no(void) { return 0; }

static int seal(const ElfW(Phdr) *text, ElfW(Addr) bias)
{
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ElfW(Addr) into = (bias + text->p_vaddr) % PAGE;
    void *at = (void *)(bias + text->p_vaddr - into);

    return mmap(at, text->p_filesz + into, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, file,
                (off_t)(text->p_offset - into)) == at &&
           close(file) == 0 && mprotect(at, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) == -1 && errno == EACCES;
}

static long (*resolve(void))(void)
{
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
    /* The program headers follow the ELF header, which is at the start of the image. */
    ElfW(Addr) bias = (ElfW(Addr))headers - sizeof(ElfW(Ehdr));

    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
        if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X)
            return seal(&headers[i], bias) ? yes : no;
    return no;
}

long sealed(void) __attribute__((ifunc("resolve")));

#else

__attribute__((noinline, noclone)) long own(long x) { __asm__ volatile(""); return x * 3; }

int main(void)
{
    long sum = 0;

    for (long i = 0; i < 100; i++)
        sum += own(i);
    printf("sealed %ld, sum %ld\n", sealed(), sum);
    return 0;
}
#endif
