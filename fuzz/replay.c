/* SPDX-License-Identifier: MIT */
/*
 * Stands in for libFuzzer where there is none: gives each file of the named files and folders
 * (not their subfolders) to LLVMFuzzerTestOneInput once.  A finding is a crash or a sanitizer's
 * report; this file judges nothing.  An empty or missing corpus is an error: a replay of nothing
 * would always pass.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each input is in a block of exactly its size, so that AddressSanitizer reports accesses after
 * it. */
static int replay_file(const char *path)
{
    struct stat info;
    FILE *file = fopen(path, "rb");

    if (!file || fstat(fileno(file), &info) != 0) {
        perror(path);
        exit(1);
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, file) != size) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(1);
    }
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static int replay_folder(DIR *folder, const char *folder_path)
{
    int replayed = 0;
    char path[4096];
    const struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", folder_path, entry->d_name);
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            replayed += replay_file(path);
        }
    }
    return replayed;
}

int main(int argc, char **argv)
{
    int replayed = 0;

    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder) {
            replayed += replay_folder(folder, argv[i]);
            closedir(folder);
        } else {
            replayed += replay_file(argv[i]);
        }
    }
    printf("%d inputs replayed\n", replayed);
    return replayed > 0 ? 0 : 1;
}
