/* SPDX-License-Identifier: MIT */
/* The parts of a live record that both the launcher and the target read and change: flags of
 * modules, states of functions, slots. */
#include "base/status.h"
#include "live/live.h"

const char *hfn_live_text(const hfn_live *live, uint64_t offset)
{
    const char *strings = (const char *)hfn_live_section(live, HFN_SECTION_STRINGS);
    uint64_t bytes = hfn_live_section_bytes(live, HFN_SECTION_STRINGS);

    if (offset >= bytes || !memchr(strings + offset, 0, bytes - offset)) {
        return "";
    }
    return strings + offset;
}

uint32_t hfn_live_get_module_count(const hfn_live *live)
{
    if (!live) {
        return 0;
    }

    uint32_t count = hfn_shared_get32(live->base + HFN_AT_MODULES);
    uint64_t capacity = live->layout.sections[HFN_SECTION_MODULES].elements;

    if (hfn_os_is_open(live->file)) {
        return live->module_count;
    }
    return count < capacity ? count : (uint32_t)capacity;
}

bool hfn_live_find_module(const hfn_live *live, uint32_t module, uint8_t **entry, uint32_t *first,
                          uint32_t *count)
{
    uint64_t capacity = live->layout.sections[HFN_SECTION_FUNCTIONS].elements;

    if (module >= hfn_live_get_module_count(live)) {
        return false;
    }
    *entry = hfn_live_section(live, HFN_SECTION_MODULES) + (uint64_t)module * HFN_MODULE_BYTES;
    *first = hfn_read_le32(*entry + HFN_MODULE_FIRST_FUNCTION);
    *count = hfn_read_le32(*entry + HFN_MODULE_FUNCTIONS);
    return *first <= capacity && *count <= capacity - *first;
}

hotfn_status hfn_live_set_module(hfn_live *live, uint32_t module, uint32_t flags,
                                 uint64_t load_base, const char *note)
{
    if (!live) {
        return HOTFN_E_OPTION;
    }

    uint32_t first, count;
    uint8_t *entry;

    if (!hfn_live_find_module(live, module, &entry, &first, &count)) {
        return HOTFN_E_NOT_FOUND;
    }
    if (note) {
        size_t length = strnlen(note, HFN_MODULE_NOTE_BYTES - 1);

        memcpy(entry + HFN_MODULE_NOTE, note, length);
        entry[HFN_MODULE_NOTE + length] = 0;
    }
    if (load_base) {
        hfn_shared_put64(entry + HFN_MODULE_LOAD_BASE, load_base);
    }
    hfn_shared_put32(entry + HFN_MODULE_FLAGS, flags);
    return HOTFN_OK;
}

hotfn_status hfn_live_set_function(hfn_live *live, uint32_t module, uint32_t function_index,
                                   uint32_t state, uint32_t reason, uint32_t reason_offset)
{
    if (!live) {
        return HOTFN_E_OPTION;
    }

    uint32_t first, count;
    uint8_t *entry, *at;

    if (!hfn_live_find_module(live, module, &entry, &first, &count) || function_index >= count) {
        return HOTFN_E_NOT_FOUND;
    }
    if (reason >= HFN_REASON_CAPACITY) {
        return HOTFN_E_LIMIT;
    }
    at = hfn_live_section(live, HFN_SECTION_STATES) +
         (uint64_t)(first + function_index) * HFN_STATE_BYTES;
    hfn_shared_put32(at + HFN_STATE_OFFSET, reason_offset);
    hfn_shared_put32(at + HFN_STATE_WORD, HFN_STATE_AND_REASON(state, reason));
    return HOTFN_OK;
}

void hfn_live_remove_function_flags(hfn_live *live, uint32_t module, uint32_t function_index,
                                    uint32_t flags)
{
    uint32_t first, count;
    uint8_t *entry, *at;

    if (hfn_live_find_module(live, module, &entry, &first, &count) && function_index < count) {
        at = hfn_live_section(live, HFN_SECTION_FUNCTIONS) +
             (uint64_t)(first + function_index) * HFN_FUNCTION_BYTES + HFN_FUNCTION_FLAGS;
        hfn_shared_put32(at, hfn_shared_get32(at) & ~flags);
    }
}

bool hfn_live_is_hooked(const hfn_live *live, uint32_t module, uint32_t function_index)
{
    uint32_t first, count;
    uint8_t *entry;

    if (!hfn_live_find_module(live, module, &entry, &first, &count) || function_index >= count) {
        return false;
    }
    const uint8_t *at = hfn_live_section(live, HFN_SECTION_STATES) +
                        (uint64_t)(first + function_index) * HFN_STATE_BYTES;
    return HFN_STATE_OF(hfn_shared_get32(at + HFN_STATE_WORD)) == HOTFN_STATE_HOOKED;
}

void hfn_live_set_count_only(hfn_live *live, uint32_t module, uint32_t function_index,
                             uint32_t reason)
{
    uint32_t first, count;
    uint8_t *entry;

    if (hfn_live_time_header(live) && hfn_live_find_module(live, module, &entry, &first, &count) &&
        function_index < count) {
        hfn_shared_put32(hfn_live_section(live, HFN_SECTION_TIMING_STATES) +
                             (uint64_t)(first + function_index) * 4,
                         HFN_TIMING_WORD(HOTFN_TIMING_COUNT_ONLY, reason));
    }
}

/* ---- Processes and the comparison of their patches. */

static void add_to_word(hfn_live *live, uint32_t at, uint32_t value)
{
    uint32_t *word = (uint32_t *)(void *)(live->base + at);

    __atomic_fetch_add(word, value, __ATOMIC_RELAXED);
}

void hfn_live_begin_process(hfn_live *live)
{
    add_to_word(live, HFN_AT_PROCESSES, 1);
}

void hfn_live_set_checked(hfn_live *live, uint64_t time_ns)
{
    hfn_shared_put64(live->base + HFN_AT_CHECKED_NS, time_ns);
}

void hfn_live_set_verified(hfn_live *live)
{
    add_to_word(live, HFN_AT_VERIFIED, 1);
}

void hfn_live_revoke_verified(hfn_live *live)
{
    add_to_word(live, HFN_AT_VERIFIED, UINT32_MAX);
}

const uint32_t *hfn_live_get_slots(const hfn_live *live, uint32_t module)
{
    if (!live) {
        return NULL;
    }

    uint32_t first, count;
    uint8_t *entry;

    if (!hfn_live_find_module(live, module, &entry, &first, &count)) {
        return NULL;
    }
    return (const uint32_t *)(const void *)hfn_live_section(live, HFN_SECTION_SLOTS) + first;
}

const char *hfn_live_get_function_name(const hfn_live *live, uint32_t module,
                                       uint32_t function_index)
{
    if (!live) {
        return NULL;
    }

    uint32_t first, count;
    uint8_t *entry;

    if (!hfn_live_find_module(live, module, &entry, &first, &count) || function_index >= count) {
        return NULL;
    }
    return hfn_live_text(live,
                         hfn_read_le32(hfn_live_section(live, HFN_SECTION_FUNCTIONS) +
                                       (uint64_t)(first + function_index) * HFN_FUNCTION_BYTES +
                                       HFN_FUNCTION_NAME));
}

hotfn_status hfn_live_get_module(const hfn_live *live, uint32_t module, hotfn_record_module *out)
{
    if (!live) {
        return HOTFN_E_OPTION;
    }

    hotfn_record_module m = HOTFN_RECORD_MODULE_INIT;
    const char *slash;
    uint8_t *entry;

    if (!hfn_live_find_module(live, module, &entry, &m.first_function, &m.function_count)) {
        return HOTFN_E_NOT_FOUND;
    }
    hfn_module_read(entry, &m);
    m.flags = hfn_shared_get32(entry + HFN_MODULE_FLAGS);
    m.load_base = hfn_shared_get64(entry + HFN_MODULE_LOAD_BASE);
    m.path = hfn_live_text(live, hfn_read_le32(entry + HFN_MODULE_PATH));
    slash = strrchr(m.path, '/');
    m.file = slash ? slash + 1 : m.path;
    return hfn_copy_result(out, &m, sizeof m);
}

/* ---- The function of a slot. */

static void read_function(const hfn_live *live, uint32_t module, uint32_t index,
                          hotfn_record_function *f)
{
    const uint8_t *at =
        hfn_live_section(live, HFN_SECTION_FUNCTIONS) + (uint64_t)index * HFN_FUNCTION_BYTES;
    const uint8_t *state =
        hfn_live_section(live, HFN_SECTION_STATES) + (uint64_t)index * HFN_STATE_BYTES;
    uint32_t word = hfn_shared_get32(state + HFN_STATE_WORD), reason = HFN_REASON_OF(word);

    f->module = module;
    f->rva = hfn_read_le64(at + HFN_FUNCTION_RVA);
    f->byte_count = hfn_read_le64(at + HFN_FUNCTION_SIZE);
    f->flags = hfn_read_le32(at + HFN_FUNCTION_FLAGS);
    f->name_count = hfn_read_le32(at + HFN_FUNCTION_NAMES);
    f->name = hfn_live_text(live, hfn_read_le32(at + HFN_FUNCTION_NAME));
    f->names = f->name + strlen(f->name) + 1;
    f->strategy = hfn_live_text(live, hfn_read_le32(at + HFN_FUNCTION_STRATEGY));
    f->state = HFN_STATE_OF(word);
    f->reason_offset = hfn_read_le32(state + HFN_STATE_OFFSET);
    f->reason = f->reason_text = "";
    if (reason != 0 && reason < HFN_REASON_CAPACITY) {
        const uint8_t *words =
            hfn_live_section(live, HFN_SECTION_REASONS) + (uint64_t)reason * HFN_REASON_BYTES;

        f->reason = hfn_live_text(live, hfn_read_le32(words + HFN_REASON_NAME));
        f->reason_text = hfn_live_text(live, hfn_read_le32(words + HFN_REASON_TEXT));
    }
}

/* The slots of a module are in the order of its functions, but some functions have no slot.  So the
 * function's index is at least the slot's index within the module, where the search begins. */
bool hfn_live_find_slot(const hfn_live *live, uint32_t slot, hotfn_record_function *out)
{
    for (uint32_t module = hfn_live_get_module_count(live); module-- > 0;) {
        uint32_t first, count, first_slot, slot_count;
        uint8_t *entry;

        if (!hfn_live_find_module(live, module, &entry, &first, &count)) {
            continue;
        }
        first_slot = hfn_read_le32(entry + HFN_MODULE_FIRST_SLOT);
        slot_count = hfn_read_le32(entry + HFN_MODULE_SLOTS);
        if (slot < first_slot || slot - first_slot >= slot_count) {
            continue;
        }
        const uint32_t *slots = hfn_live_get_slots(live, module);
        for (uint32_t i = slot - first_slot; i < count; i++) {
            if (slots[i] == slot) {
                out->slot = slot;
                read_function(live, module, first + i, out);
                return true;
            }
        }
    }
    return false;
}
