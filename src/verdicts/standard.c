/* SPDX-License-Identifier: MIT */
/*
 * Functions whose arguments are known by name, because a standard reserves the name: C, C++,
 * POSIX, the C++ ABI.  All of them take their arguments in registers, do not inspect their caller
 * and return at most once.  Not listed: functions with variable arguments; dlsym and others that
 * read their return address; setjmp, vfork and contexts; functions with a structure or
 * long double argument.
 */
#include "base/compiler.h"
#include "verdicts/analysis.h"

#include <stdlib.h>
#include <string.h>

/* Sorted by strcmp. */
static const char *const names[] = {
    /* clang-format off */
    "_ZdaPv", "_ZdaPvRKSt9nothrow_t", "_ZdaPvSt11align_val_t", "_ZdaPvm", "_ZdaPvmSt11align_val_t",
    "_ZdlPv", "_ZdlPvRKSt9nothrow_t", "_ZdlPvSt11align_val_t", "_ZdlPvm", "_ZdlPvmSt11align_val_t",
    "_Znam", "_ZnamRKSt9nothrow_t", "_ZnamSt11align_val_t", "_Znwm", "_ZnwmRKSt9nothrow_t",
    "_ZnwmSt11align_val_t", "__cxa_atexit", "__cxa_guard_abort", "__cxa_guard_acquire",
    "__cxa_guard_release", "__errno_location", "abort", "abs", "access", "acos", "acosh",
    "aligned_alloc", "asin", "asinh", "atan", "atan2", "atanh", "atexit", "atof", "atoi", "atol",
    "atoll", "bsearch", "calloc", "cbrt", "ceil", "ceilf", "close", "closedir", "connect", "cos",
    "cosh", "ctime", "difftime", "div", "dup", "dup2", "exp", "exp2", "expf", "expm1", "fabs",
    "fabsf", "fchmod", "fclose", "feof", "ferror", "fflush", "fgetc", "fgets", "fileno", "floor",
    "floorf", "fmod", "fmodf", "fopen", "fopen64", "fputc", "fputs", "fread", "free", "fseek",
    "fseeko", "fseeko64", "fstat", "fstat64", "fsync", "ftell", "ftello", "ftello64", "ftruncate",
    "ftruncate64", "fwrite", "getc", "getenv", "geteuid", "getpid", "gettimeofday", "getuid",
    "gmtime", "gmtime_r", "hypot", "isatty", "kill", "ldexp", "listen", "localeconv", "localtime",
    "localtime_r", "log", "log10", "log2", "logf", "lseek", "lseek64", "lstat", "lstat64", "malloc",
    "malloc_usable_size", "memalign", "memchr", "memcmp", "memcpy", "memmove", "memset", "mkdir",
    "mktime", "mmap", "mmap64", "modf", "mprotect", "munmap", "nanosleep", "opendir", "perror",
    "pipe", "poll", "posix_memalign", "pow", "powf", "pread", "pread64", "pthread_cond_broadcast",
    "pthread_cond_signal", "pthread_cond_timedwait", "pthread_cond_wait", "pthread_getspecific",
    "pthread_join", "pthread_key_create", "pthread_key_delete", "pthread_mutex_destroy",
    "pthread_mutex_init", "pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_unlock",
    "pthread_once", "pthread_rwlock_rdlock", "pthread_rwlock_unlock", "pthread_rwlock_wrlock",
    "pthread_self", "pthread_setspecific", "putc", "putchar", "puts", "pwrite", "pwrite64", "qsort",
    "raise", "read", "readdir", "readdir64", "readlink", "realloc", "recv", "remove", "rename",
    "rewind", "rmdir", "select", "send", "setenv", "setlocale", "sin", "sinh", "sqrt", "sqrtf",
    "stat", "stat64", "strcasecmp", "strcat", "strchr", "strcmp", "strcoll", "strcpy", "strcspn",
    "strdup", "strerror", "strftime", "strlen", "strncasecmp", "strncat", "strncmp", "strncpy",
    "strndup", "strnlen", "strpbrk", "strrchr", "strspn", "strstr", "strtod", "strtol", "strtoll",
    "strtoul", "strtoull", "strxfrm", "system", "tan", "tanh", "time", "tolower", "toupper",
    "trunc", "ungetc", "unlink", "unsetenv", "usleep", "utimes", "waitpid", "wcslen", "wmemchr",
    "wmemcmp", "wmemcpy", "wmemmove", "wmemset", "write",
    /* clang-format on */
};

static int compare_names(const void *name, const void *with)
{
    return strcmp(name, *(const char *const *)with);
}

/* A function that returns a structure pops the structure's address.  A C++ name does not contain
 * the return type, but no C++ function whose name begins like this returns a structure. */
bool hfn_pops_nothing(const hfn_analysis *a, const char *name)
{
    static const char *const begins[] = { "__cxa_", "_Zn", "_Zd", "_ZSt", "_Unwind_" };

    for (size_t i = 0; i < HFN_COUNT_OF(begins); i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0 &&
            (strncmp(name, "_ZSt", 4) != 0 || strstr(name, "__throw_"))) {
            return true;
        }
    }
    return strstr(name, "printf") != NULL || strstr(name, "scanf") != NULL ||
           strcmp(name, "__stack_chk_fail") == 0 || hfn_is_standard(a, name);
}

/* i386: div returns a structure and pops its address. */
bool hfn_is_standard(const hfn_analysis *a, const char *name)
{
    if (a->arch->pointer_bytes == 4 && strcmp(name, "div") == 0) {
        return false;
    }
    return bsearch(name, names, HFN_COUNT_OF(names), sizeof names[0], compare_names) != NULL;
}
