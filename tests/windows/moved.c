/* SPDX-License-Identifier: MIT */
/* A library (MOVED_LIBRARY) and a program that loads it.  The library is linked for the address of
 * the program, so the loader moves it and changes the addresses in its code. */
#ifdef MOVED_LIBRARY

int moved_total, moved_step_bytes = 3;
static const char *const names[] = { "even", "odd" };

/* Each begins with an instruction that holds an address. */
__declspec(dllexport) int moved_add(int value)
{
    return moved_total += value * moved_step_bytes;
}

__declspec(dllexport) const char *moved_name(void)
{
    return names[moved_total & 1];
}

__declspec(dllexport) void moved_reset(void)
{
    moved_total = 5;
}

#else

#include <stdio.h>
#include <windows.h>

typedef int (*add_fn)(int);
typedef const char *(*name_fn)(void);

int main(void)
{
    HMODULE library = LoadLibraryW(L"moved.dll");
    add_fn add = (add_fn)(void (*)(void))GetProcAddress(library, "moved_add");
    name_fn name = (name_fn)(void (*)(void))GetProcAddress(library, "moved_name");
    void (*reset)(void) = (void (*)(void))GetProcAddress(library, "moved_reset");
    int sum = 0, odd = 0;

    reset();
    for (int i = 0; i < 1000; i++) {
        sum = add(i);
        odd += name()[0] == 'o';
    }
    printf("%d %d %d\n", library != GetModuleHandleW(NULL), sum, odd);
    return 0;
}

#endif
