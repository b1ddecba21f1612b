/* SPDX-License-Identifier: MIT */
/* Descriptions of the loaded modules, which are made when a session is created.  To resolve a path
 * takes a system call for each of its folders, so the start only checks that the file at the
 * resolved path is still the same. */
#include "scan/file_stamp.h"
#include "session/own_session.h"

#include <string.h>

static hfn_described *find_described(const hotfn_session *s, const hfn_os_module *m)
{
    hfn_described *known = s->described;

    while (known && (known->request.load_base != m->base || strcmp(known->name, m->path) != 0)) {
        known = known->next;
    }
    return known;
}

static bool is_same_file(const hfn_plan_request *request)
{
    hfn_os_file_info file;

    return hfn_os_get_path_info(request->path, &file) == 0 && file.device == request->file_device &&
           file.inode == request->file_inode && hfn_file_stamp(&file) == request->file_stamp;
}

/* Without memory for it, the module is described again at the start. */
static void keep_description(hotfn_session *s, const hfn_os_module *m, const hfn_plan_request *made)
{
    hfn_described *added = hfn_arena_alloc(&s->texts, sizeof *added);

    if (added) {
        added->name = hfn_arena_copy(&s->texts, m->path, strlen(m->path));
    }
    if (added && added->name) {
        added->request = *made;
        added->next = s->described;
        s->described = added;
    }
}

bool hfn_session_describe(void *session, const hfn_os_module *m, hfn_plan_request *out)
{
    hotfn_session *s = session;
    hfn_described *known = find_described(s, m);

    if (known && is_same_file(&known->request)) {
        *out = known->request;
        return true;
    }
    if (!hfn_process_describe_module(m, out)) {
        return false;
    }
    if (known) {
        known->request = *out;
    } else {
        keep_description(s, m, out);
    }
    return true;
}
