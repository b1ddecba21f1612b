/* SPDX-License-Identifier: MIT */
/* Append modules to a live record: names, then functions, then the module, and last the counts that
 * make them visible to readers (publish_counts).  Only the creator appends. */
#include "base/status.h"
#include "live/live.h"

/* ---- Strings. */

static hotfn_status append_bytes(hfn_live *live, const char *bytes, uint64_t byte_count,
                                 uint32_t *offset, hotfn_error *err)
{
    uint64_t room = hfn_live_section_bytes(live, HFN_SECTION_STRINGS) - live->string_bytes;
    hotfn_status status;

    if (byte_count > room) {
        return hfn_report_error(err, HOTFN_E_LIMIT, live->path, HOTFN_NO_OFFSET,
                                "the record has no room for more names");
    }
    status = hfn_live_allocate(live, HFN_SECTION_STRINGS, live->string_bytes + byte_count,
                               &live->string_bytes_allocated, err);
    if (status != HOTFN_OK) {
        return status;
    }
    memcpy(hfn_live_section(live, HFN_SECTION_STRINGS) + live->string_bytes, bytes, byte_count);
    *offset = (uint32_t)live->string_bytes;
    live->string_bytes += byte_count;
    return HOTFN_OK;
}

/* Append a string and an empty string after it.  Together they are also a valid list with one name,
 * so a loop over the list ends inside the section. */
static hotfn_status append_text(hfn_live *live, const char *text, uint32_t *offset,
                                hotfn_error *err)
{
    hotfn_status status;
    uint32_t end;

    *offset = 0;
    if (!text || !text[0]) {
        return HOTFN_OK;
    }
    status = append_bytes(live, text, strlen(text) + 1, offset, err);
    return status == HOTFN_OK ? append_bytes(live, "", 1, &end, err) : status;
}

/* Bytes of a list of names, its final empty name included. */
static uint64_t count_list_bytes(const char *names)
{
    const char *at = names;

    while (at[0]) {
        at += strlen(at) + 1;
    }
    return (uint64_t)(at - names) + 1;
}

/* ---- Texts that are stored already. */

static bool find_known(const hfn_known_text *known, const char *text, uint32_t *value)
{
    for (uint32_t i = 0; i < HFN_KNOWN_TEXTS; i++) {
        if (known[i].text == text) {
            *value = known[i].value;
            return true;
        }
    }
    return false;
}

static void remember_text(hfn_known_text *known, uint32_t *next, const char *text, uint32_t value)
{
    known[*next % HFN_KNOWN_TEXTS] = (hfn_known_text){ text, value };
    ++*next;
}

static void forget_texts(hfn_live *live)
{
    memset(live->strategies, 0, sizeof live->strategies);
    memset(live->reasons, 0, sizeof live->reasons);
}

static hotfn_status store_strategy(hfn_live *live, const char *text, uint32_t *offset,
                                   hotfn_error *err)
{
    hotfn_status status;

    *offset = 0;
    if (!text || !text[0] || find_known(live->strategies, text, offset)) {
        return HOTFN_OK;
    }
    for (uint32_t i = 0; i < HFN_KNOWN_TEXTS; i++) {
        const hfn_known_text *k = &live->strategies[i];

        if (k->text && strcmp(hfn_live_text(live, k->value), text) == 0) {
            *offset = k->value;
            return HOTFN_OK;
        }
    }
    status = append_text(live, text, offset, err);
    if (status == HOTFN_OK) {
        remember_text(live->strategies, &live->next_strategy, text, *offset);
    }
    return status;
}

static uint8_t *get_reason_entry(const hfn_live *live, uint32_t reason)
{
    return hfn_live_section(live, HFN_SECTION_REASONS) + (uint64_t)reason * HFN_REASON_BYTES;
}

/* Find the number of a reason by its name, or store the name under the highest free number. */
static hotfn_status store_reason(hfn_live *live, const char *name, const char *text,
                                 uint32_t *number, hotfn_error *err)
{
    uint32_t free_number = 0;
    hotfn_status status;

    *number = 0;
    if (!name || !name[0] || find_known(live->reasons, name, number)) {
        return HOTFN_OK;
    }
    for (uint32_t i = 1; i < HFN_REASON_CAPACITY; i++) {
        uint32_t known = hfn_read_le32(get_reason_entry(live, i) + HFN_REASON_NAME);

        if (known == 0) {
            free_number = i;
        } else if (strcmp(hfn_live_text(live, known), name) == 0) {
            *number = i;
            remember_text(live->reasons, &live->next_reason, name, i);
            return HOTFN_OK;
        }
    }
    if (free_number == 0) {
        return hfn_report_error(err, HOTFN_E_LIMIT, live->path, HOTFN_NO_OFFSET,
                                "the record has no room for more reasons");
    }
    status = hfn_live_set_reason(live, free_number, name, text);
    *number = free_number;
    remember_text(live->reasons, &live->next_reason, name, free_number);
    return status;
}

/* Forget the reasons whose strings were discarded when string_bytes was reset. */
static void forget_reasons(hfn_live *live)
{
    for (uint32_t i = 1; i < HFN_REASON_CAPACITY; i++) {
        uint8_t *entry = get_reason_entry(live, i);

        if (hfn_read_le32(entry + HFN_REASON_NAME) >= live->string_bytes) {
            hfn_shared_put32(entry + HFN_REASON_NAME, 0);
            hfn_shared_put32(entry + HFN_REASON_TEXT, 0);
        }
    }
}

hotfn_status hfn_live_set_reason(hfn_live *live, uint32_t reason, const char *name,
                                 const char *text)
{
    if (!live || !name || !text) {
        return HOTFN_E_OPTION;
    }

    uint32_t name_at, text_at;
    hotfn_status status;
    uint8_t *entry;

    if (!hfn_os_is_open(live->file)) {
        return HOTFN_E_STATE;
    }
    if (reason == 0 || reason >= HFN_REASON_CAPACITY) {
        return HOTFN_E_LIMIT;
    }
    status = append_text(live, name, &name_at, NULL);
    if (status == HOTFN_OK) {
        status = append_text(live, text, &text_at, NULL);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    entry = get_reason_entry(live, reason);
    hfn_shared_put64(live->base + HFN_AT_STRINGS, live->string_bytes);
    hfn_shared_put32(entry + HFN_REASON_TEXT, text_at);
    hfn_shared_put32(entry + HFN_REASON_NAME, name_at);
    return HOTFN_OK;
}

/* ---- Functions. */

static hotfn_status append_names(hfn_live *live, const hotfn_record_function *f, uint32_t *offset,
                                 hotfn_error *err)
{
    const char *name = f->name ? f->name : "", *others = f->names ? f->names : "";
    uint32_t others_at;
    hotfn_status status = append_bytes(live, name, strlen(name) + 1, offset, err);

    return status == HOTFN_OK
               ? append_bytes(live, others, count_list_bytes(others), &others_at, err)
               : status;
}

static bool needs_slot(const hotfn_record_function *f)
{
    return f->state == HOTFN_STATE_HOOKED || f->state == HOTFN_STATE_WAITING;
}

static uint32_t assign_slot(hfn_live *live, const hotfn_record_function *f)
{
    if (!needs_slot(f) || live->slot_count >= hfn_live_slot_capacity(live)) {
        return HOTFN_NO_SLOT;
    }
    return live->slot_count++;
}

/* Store how the calls of the function are timed. */
static void write_timing_state(hfn_live *live, uint32_t index, uint32_t flags, uint32_t slot)
{
    const hfn_time_header *h = hfn_live_time_header(live);
    uint32_t mode = HOTFN_TIMING_COUNT_ONLY, reason = HOTFN_VERDICT_TIMING_REASON(flags);

    if (!h || slot == HOTFN_NO_SLOT) {
        return;
    }
    if (flags & HOTFN_VERDICT_TIMED) {
        mode = h->flags & HOTFN_TIMING_SAMPLED ? HOTFN_TIMING_SAMPLE : HOTFN_TIMING_FULL;
    }
    hfn_shared_put32(hfn_live_section(live, HFN_SECTION_TIMING_STATES) + (uint64_t)index * 4,
                     HFN_TIMING_WORD(mode, reason));
}

static hotfn_status append_function(hfn_live *live, const hotfn_record_function *f, uint32_t index,
                                    hotfn_error *err)
{
    uint8_t *at =
        hfn_live_section(live, HFN_SECTION_FUNCTIONS) + (uint64_t)index * HFN_FUNCTION_BYTES;
    uint8_t *state = hfn_live_section(live, HFN_SECTION_STATES) + (uint64_t)index * HFN_STATE_BYTES;
    uint32_t slot = assign_slot(live, f), name = 0, strategy = 0, reason = 0;
    bool out_of_slots = needs_slot(f) && slot == HOTFN_NO_SLOT;
    hotfn_status status = append_names(live, f, &name, err);

    if (status == HOTFN_OK) {
        status = store_strategy(live, f->strategy, &strategy, err);
    }
    if (status == HOTFN_OK) {
        status = store_reason(live, f->reason, f->reason_text, &reason, err);
    }
    if (status != HOTFN_OK) {
        return status;
    }
    hfn_write_le64(at + HFN_FUNCTION_RVA, f->rva);
    hfn_write_le64(at + HFN_FUNCTION_SIZE, f->byte_count);
    hfn_write_le32(at + HFN_FUNCTION_NAME, name);
    hfn_write_le32(at + HFN_FUNCTION_NAMES, f->name_count ? f->name_count : 1);
    hfn_write_le32(at + HFN_FUNCTION_FLAGS, f->flags);
    hfn_write_le32(at + HFN_FUNCTION_STRATEGY, strategy);
    hfn_write_le32(hfn_live_section(live, HFN_SECTION_SLOTS) + (uint64_t)index * 4, slot);
    hfn_write_le32(state + HFN_STATE_WORD,
                   out_of_slots ? HFN_STATE_AND_REASON(HOTFN_STATE_REFUSED, HOTFN_REASON_NO_SLOTS)
                                : HFN_STATE_AND_REASON(f->state, reason));
    hfn_write_le32(state + HFN_STATE_OFFSET, f->reason_offset);
    write_timing_state(live, index, f->flags, slot);
    return HOTFN_OK;
}

static hotfn_status append_functions(hfn_live *live, const hfn_function_source *source,
                                     uint32_t count, hotfn_error *err)
{
    hotfn_record_function f;
    uint32_t first = live->function_count;
    uint64_t capacity = live->layout.sections[HFN_SECTION_FUNCTIONS].elements;
    hotfn_status status;

    if (count > capacity - first) {
        return hfn_report_error(err, HOTFN_E_LIMIT, live->path, HOTFN_NO_OFFSET,
                                "the record has no room for %u more functions", count);
    }
    status = hfn_live_allocate(live, HFN_SECTION_FUNCTIONS,
                               (uint64_t)(first + count) * HFN_FUNCTION_BYTES,
                               &live->function_bytes_allocated, err);
    forget_texts(live); /* the caller may have reused the addresses of its texts */
    for (uint32_t i = 0; status == HOTFN_OK && i < count; i++) {
        source->get(source->user, i, &f);
        status = append_function(live, &f, first + i, err);
    }
    if (status == HOTFN_OK) {
        live->function_count += count;
    }
    return status;
}

/* ---- The module. */

static void write_module(uint8_t *at, const hotfn_record_module *m, uint32_t path)
{
    uint32_t id_bytes = m->id_bytes < sizeof m->id ? m->id_bytes : sizeof m->id;

    hfn_write_le32(at + HFN_MODULE_FLAGS, m->flags);
    hfn_write_le32(at + HFN_MODULE_MACHINE, m->machine);
    hfn_write_le32(at + HFN_MODULE_ID_KIND, m->id_kind);
    hfn_write_le32(at + HFN_MODULE_ID_BYTES, id_bytes);
    memcpy(at + HFN_MODULE_ID, m->id, sizeof m->id);
    hfn_write_le64(at + HFN_MODULE_LOAD_BASE, m->load_base);
    hfn_write_le64(at + HFN_MODULE_DEVICE, m->file_device);
    hfn_write_le64(at + HFN_MODULE_INODE, m->file_inode);
    hfn_write_le32(at + HFN_MODULE_PATH, path);
    hfn_write_le64(at + HFN_MODULE_STAMP, m->file_stamp);
    hfn_write_le64(at + HFN_MODULE_CODE_BYTES, m->code_bytes);
    hfn_write_le64(at + HFN_MODULE_KNOWN_BYTES, m->known_bytes);
}

static void publish_counts(hfn_live *live)
{
    hfn_shared_put64(live->base + HFN_AT_STRINGS, live->string_bytes);
    hfn_shared_put32(live->base + HFN_AT_FUNCTIONS, live->function_count);
    hfn_shared_put32(live->base + HFN_AT_SLOTS, live->slot_count);
    __atomic_store_n(&hfn_live_cell_header(live)->slots_used, live->slot_count, __ATOMIC_RELAXED);
    /* Stored last: a reader that sees the module sees its functions, names and slots.  Pairs with
     * the acquire load in hfn_live_get_module_count. */
    hfn_shared_put32(live->base + HFN_AT_MODULES, live->module_count);
}

/* Mark a module whose functions did not fit. */
static void mark_failed(uint8_t *at, const hotfn_record_module *m, const hotfn_error *why)
{
    hfn_write_le32(at + HFN_MODULE_FLAGS, m->flags | HOTFN_MODULE_FAILED);
    memcpy(at + HFN_MODULE_NOTE, why->text, HFN_MODULE_NOTE_BYTES - 1);
}

hotfn_status hfn_live_add_module_from(hfn_live *live, const hotfn_record_module *module,
                                      const hfn_function_source *source, uint32_t *index,
                                      hotfn_error *err)
{
    hotfn_error why = HOTFN_ERROR_INIT;
    uint32_t path, slots = live->slot_count, first = live->function_count;
    uint64_t strings;
    hotfn_record_module m;
    hotfn_status status;
    uint8_t *at;

    if (!hfn_os_is_open(live->file) || !hfn_copy_options(&m, sizeof m, module)) {
        return hfn_report_error(err, HOTFN_E_STATE, live->path, HOTFN_NO_OFFSET,
                                "only the creator of a record adds modules to it");
    }
    if (live->module_count >= live->layout.sections[HFN_SECTION_MODULES].elements) {
        return hfn_report_error(err, HOTFN_E_LIMIT, live->path, HOTFN_NO_OFFSET,
                                "the record has no room for more modules");
    }
    status = append_text(live, m.path, &path, err);
    if (status != HOTFN_OK) {
        return status;
    }
    at = hfn_live_section(live, HFN_SECTION_MODULES) +
         (uint64_t)live->module_count * HFN_MODULE_BYTES;
    write_module(at, &m, path);
    strings = live->string_bytes;
    if (append_functions(live, source, m.function_count, &why) != HOTFN_OK) {
        live->string_bytes = strings;
        live->slot_count = slots;
        forget_texts(live);
        forget_reasons(live);
        mark_failed(at, &m, &why);
    }
    hfn_write_le32(at + HFN_MODULE_FIRST_FUNCTION, first);
    hfn_write_le32(at + HFN_MODULE_FUNCTIONS, live->function_count - first);
    hfn_write_le32(at + HFN_MODULE_FIRST_SLOT, slots);
    hfn_write_le32(at + HFN_MODULE_SLOTS, live->slot_count - slots);
    *index = live->module_count++;
    publish_counts(live);
    hfn_live_allocate_first_histograms(live);
    return HOTFN_OK;
}

static void copy_function(void *user, uint32_t index, hotfn_record_function *out)
{
    const hotfn_record_function *functions = user;

    *out = functions[index];
}

hotfn_status hfn_live_add_module(hfn_live *live, const hotfn_record_module *module,
                                 const hotfn_record_function *functions, uint32_t *index,
                                 hotfn_error *err)
{
    hfn_function_source source = { copy_function, (void *)(uintptr_t)functions };

    return hfn_live_add_module_from(live, module, &source, index, err);
}
