/* SPDX-License-Identifier: MIT */
/* Copies the used parts of a live record out of a process, and repairs the copy.  Its header may
 * have been overwritten: every size is bounded by the sections of a valid layout. */
#include "launch/attach/rescue.h"

#include "base/status.h"
#include "live/live.h"
#include "os/child.h"

#include <string.h>

enum { HEAD_BYTES = 2048 };

static bool copy_range(const hfn_rescue *r, const hfn_remote *remote, uint64_t offset,
                       uint64_t bytes)
{
    uint64_t record = r->journal->header->record;

    for (uint64_t done = 0; done < bytes;) {
        uint64_t left = bytes - done;
        uint32_t count = left < r->buffer_bytes ? (uint32_t)left : r->buffer_bytes;
        if (!hfn_os_remote_read(remote, record + offset + done, r->buffer, count) ||
            hfn_os_write_at(r->copy, offset + done, r->buffer, count) != 0) {
            return false;
        }
        done += count;
    }
    return true;
}

/* How much of the record is in use, beyond what its head has. */
typedef struct usage {
    uint32_t rows;
    hfn_time_header times;
} usage;

static bool read_usage(const hfn_rescue *r, const hfn_remote *remote, const hfn_layout *layout,
                       usage *out)
{
    uint64_t record = r->journal->header->record;
    const hfn_section *times = &layout->sections[HFN_SECTION_TIME_HEADER];
    hfn_cell_header cells;

    *out = (usage){ 0 };
    if (!hfn_os_remote_read(remote, record + layout->sections[HFN_SECTION_CELLS].offset, &cells,
                            sizeof cells)) {
        return false;
    }
    out->rows = cells.cells_used;
    return times->type == 0 ||
           hfn_os_remote_read(remote, record + times->offset, &out->times, sizeof out->times);
}

/* The bytes of a section that are in use. */
static uint64_t used_bytes(const hfn_layout *layout, uint32_t type, const uint8_t *head,
                           const usage *u)
{
    const hfn_section *section = &layout->sections[type];
    uint64_t functions = hfn_read_le32(head + HFN_AT_FUNCTIONS), used;

    switch (type) {
    case HFN_SECTION_SLOTS: used = functions * sizeof(uint32_t); break;
    case HFN_SECTION_STATES: used = functions * HFN_STATE_BYTES; break;
    case HFN_SECTION_FUNCTIONS: used = functions * HFN_FUNCTION_BYTES; break;
    case HFN_SECTION_STRINGS: used = hfn_read_le64(head + HFN_AT_STRINGS); break;
    case HFN_SECTION_CELLS:
        used = sizeof(hfn_cell_header) + (uint64_t)u->rows * sizeof(hfn_thread_cell);
        break;
    case HFN_SECTION_ROWS:
    case HFN_SECTION_TIME_ROWS: used = (uint64_t)u->rows * layout->row_bytes; break;
    case HFN_SECTION_NODES: used = (uint64_t)u->times.nodes_used * sizeof(hfn_time_node); break;
    case HFN_SECTION_HISTOGRAMS:
        used = (uint64_t)u->times.histograms_used * HFN_HISTOGRAM_BYTES;
        break;
    default: used = section->bytes; break;
    }
    return used < section->bytes ? used : section->bytes;
}

static bool copy_sections(const hfn_rescue *r, const hfn_remote *remote, const hfn_layout *layout,
                          const uint8_t *head)
{
    usage u;
    bool ok = read_usage(r, remote, layout, &u);

    for (uint32_t type = 1; ok && type < HFN_SECTION_TYPES; type++) {
        const hfn_section *section = &layout->sections[type];
        if (section->type != 0) {
            ok = copy_range(r, remote, section->offset, used_bytes(layout, type, head, &u));
        }
    }
    return ok;
}

void hfn_rescue_copy(void *user, const hfn_remote *remote)
{
    hfn_rescue *r = user;
    uint8_t head[HEAD_BYTES];
    hfn_layout layout;
    uint64_t bytes;

    if (r->journal->header->record == 0 ||
        !hfn_os_remote_read(remote, r->journal->header->record, head, sizeof head)) {
        return;
    }
    bytes = hfn_read_le64(head + HFN_AT_FILE_BYTES);
    if (hfn_header_read(&layout, (hfn_span){ head, sizeof head, false }, bytes, false, NULL,
                        NULL) != HOTFN_OK ||
        !hfn_live_is_own_layout(&layout) ||
        hfn_os_create_shared(&r->copy, "hotfn-rescued", bytes) != 0) {
        return;
    }
    if (hfn_os_write_at(r->copy, 0, head, sizeof head) != 0 ||
        !copy_sections(r, remote, &layout, head)) {
        hfn_os_close_file(r->copy);
        r->copy = HFN_OS_NO_FILE;
    }
}

hotfn_status hfn_rescue_finish(hfn_rescue *r, const char *path, const hotfn_env *env,
                               hotfn_error *err)
{
    char copy[64];
    hotfn_status status;

    if (!hfn_os_is_open(r->copy)) {
        return hfn_report_error(err, HOTFN_E_FORMAT, NULL, HOTFN_NO_OFFSET,
                                "the counts of the hotfn that was killed cannot be read");
    }
    hfn_os_shared_path((int)r->copy.handle, copy, sizeof copy);
    status = hotfn_record_repair(copy, path, NULL, 0, env, err);
    hfn_os_close_file(r->copy);
    r->copy = HFN_OS_NO_FILE;
    return status;
}
