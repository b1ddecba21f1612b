/* SPDX-License-Identifier: MIT */
/* Cached scans are untrusted like any file: who reads one checks it whole (hfn_scan_check,
 * hotfn_plan_open).  A file is written beside its place and renamed, so a reader sees all or none. */
#include "scan/cache.h"

#include "os/os.h"
#include "scan/block.h"
#include "scan/file_stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t mix_facts(uint64_t hash, const char *path)
{
    struct stat file;
    if (stat(path, &file) == 0) {
        uint64_t facts[] = { (uint64_t)file.st_ino, (uint64_t)file.st_size,
                             (uint64_t)file.st_mtim.tv_sec, (uint64_t)file.st_mtim.tv_nsec };
        hash = hfn_stamp_mix(hash, facts, sizeof facts);
    }
    return hash;
}

/* A file that is read besides: its name, size and times. */
static uint64_t mix_file(uint64_t hash, const char *path)
{
    return hfn_stamp_mix(mix_facts(hash, path), path, strlen(path) + 1);
}

/* The file that this very code is of, if that is a library; *user is the hash. */
static bool mix_if_own(void *user, const hfn_os_module *module)
{
    uint64_t *hash = user, here = (uint64_t)(uintptr_t)&hfn_scan_stamp;
    if (here < module->base || here >= module->end) {
        return true;
    }
    *hash = mix_facts(*hash, module->is_main ? "/proc/self/exe" : module->path);
    return false;
}

uint64_t hfn_scan_stamp(const char *path, const struct stat *file,
                        const hotfn_scan_options *options, const hotfn_env *env)
{
    uint64_t facts[] = { HFN_SCAN_VERSION,     (uint64_t)file->st_dev, (uint64_t)file->st_ino,
                         hfn_file_stamp(file), options->flags,         env->decompress_fn != NULL };
    uint64_t hash = hfn_stamp_mix(HFN_STAMP_BEGIN, facts, sizeof facts);
    hfn_os_each_module(mix_if_own, &hash); /* another build of ourselves may judge otherwise */
    hash = hfn_stamp_mix(hash, hotfn_get_version(), strlen(hotfn_get_version()));
    for (uint32_t i = 0; i < options->symbol_dir_count; i++) {
        hash = hfn_stamp_mix(hash, options->symbol_dirs[i], strlen(options->symbol_dirs[i]) + 1);
    }
    if (options->map_path) {
        hash = mix_file(hash, options->map_path);
    }
    return hfn_stamp_mix(hash, path, strlen(path));
}

static int cache_name(char *out, size_t bytes, const char *folder, uint64_t stamp, const char *tail)
{
    int n = snprintf(out, bytes, "%s/%016llx.scan%s", folder, (unsigned long long)stamp, tail);
    return n > 0 && (size_t)n < bytes;
}

const uint8_t *hfn_scan_cache_load(const char *folder, uint64_t stamp, uint64_t *bytes)
{
    char name[1024];
    struct stat file;
    if (!cache_name(name, sizeof name, folder, stamp, "")) {
        return NULL;
    }
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    void *block = MAP_FAILED;
    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
        file.st_size >= (off_t)HFN_SCAN_HEADER_BYTES) {
        block = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    }
    close(fd);
    if (block == MAP_FAILED) {
        return NULL;
    }
    *bytes = (uint64_t)file.st_size;
    return block;
}

void hfn_scan_cache_unload(const uint8_t *block, uint64_t bytes)
{
    munmap((void *)(uintptr_t)block, bytes);
}

static void make_folders(const char *folder)
{
    char path[1024];
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) {
        return;
    }
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    mkdir(path, 0700);
}

static int write_all(int fd, const uint8_t *block, uint64_t bytes)
{
    uint64_t done = 0;
    while (done < bytes) {
        ssize_t n = write(fd, block + done, bytes - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return 0;
        }
        done += (uint64_t)n;
    }
    return 1;
}

int hfn_scan_cache_store(const char *folder, uint64_t stamp, const uint8_t *block, uint64_t bytes)
{
    char name[1024];
    char beside[1024];
    char tail[32];
    snprintf(tail, sizeof tail, ".%ld", (long)getpid());
    if (!cache_name(name, sizeof name, folder, stamp, "") ||
        !cache_name(beside, sizeof beside, folder, stamp, tail)) {
        return 0;
    }
    make_folders(folder);
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return 0;
    }
    int ok = write_all(fd, block, bytes);
    close(fd);
    if (!ok || rename(beside, name) != 0) {
        unlink(beside);
        return 0;
    }
    return 1;
}
