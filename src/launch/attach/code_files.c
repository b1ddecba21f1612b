/* SPDX-License-Identifier: MIT */
/* The list of files that a process has mapped, and the comparison with earlier mappings. */
#include "launch/attach/code_files.h"

#include "base/memory.h"

typedef struct listing {
    hfn_code_files *files;
    const hotfn_env *env;
    bool ok;
} listing;

static bool add_pages(void *user, const hfn_remote_code *pages)
{
    listing *l = user;
    hfn_code_files *f = l->files;

    l->ok = hfn_grow_array(l->env, (void **)&f->pages, &f->capacity, f->count + 1, sizeof *pages);
    if (l->ok) {
        f->pages[f->count++] = *pages;
    }
    return l->ok;
}

bool hfn_code_files_list(hfn_code_files *files, const hfn_remote *remote)
{
    listing l = { files, &remote->env, true };

    files->count = 0;
    return hfn_os_remote_each_file(remote->pid, add_pages, &l) && l.ok;
}

void hfn_code_files_free(hfn_code_files *files, const hotfn_env *env)
{
    hfn_free_memory(env, files->pages, files->capacity * sizeof *files->pages);
    *files = (hfn_code_files){ 0 };
}

/* The first pages that end above an address; NULL: none. */
static const hfn_remote_code *find_pages(const hfn_code_files *files, uint64_t address)
{
    size_t low = 0, high = files->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (files->pages[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < files->count ? &files->pages[low] : NULL;
}

bool hfn_code_files_have(const hfn_code_files *files, const hfn_remote_code *code, uint64_t begin,
                         uint64_t end)
{
    while (begin < end) {
        const hfn_remote_code *now = find_pages(files, begin);
        if (!now || now->begin > begin || now->device != code->device ||
            now->inode != code->inode || now->offset - now->begin != code->offset - code->begin) {
            return false;
        }
        begin = now->end;
    }
    return true;
}
