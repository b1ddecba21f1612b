/* SPDX-License-Identifier: MIT */
/* Writes a region: the count gate; the time gates if the set can time; the call gate and the filter
 * gate if a stub needs one of them; the stubs; the unwind tables.  Code and tables are written
 * while the pages are data.  Then the pages become executable (the tables too, because they share a
 * page with the last stubs), and unused pages are released. */
#include "hooks/region_writer.h"

#include "os/os.h"

static uint64_t page_up(uint64_t address)
{
    uint64_t page = hfn_os_page_bytes();

    return (address + page - 1) & ~(page - 1);
}

static uint64_t page_down(uint64_t address)
{
    return address & ~(hfn_os_page_bytes() - 1);
}

static uint32_t call_gate_at(const hotfn_hooks *hooks)
{
    return HFN_STUB_COUNT_GATE_ROOM + (hfn_hooks_can_time(hooks) ? 2 * HFN_STUB_TIME_GATE_ROOM : 0);
}

uint32_t hfn_region_gate_bytes(const hotfn_hooks *hooks, const hfn_region_needs *needs)
{
    return call_gate_at(hooks) +
           (needs->calls ? HFN_STUB_CALL_GATE_ROOM + HFN_STUB_FILTER_GATE_ROOM : 0);
}

static bool wants_unwind(const hotfn_hooks *hooks)
{
    return !(hooks->options.flags & HOTFN_HOOKS_NO_UNWIND);
}

/* Offset of the tables from the first byte of code. */
static uint64_t tables_at(const hotfn_hooks *hooks, const hfn_region_needs *needs)
{
    return (hfn_region_gate_bytes(hooks, needs) + needs->stub_bytes + 7) & ~UINT64_C(7);
}

uint64_t hfn_region_bytes(const hotfn_hooks *hooks, const hfn_region_needs *needs)
{
    if (!wants_unwind(hooks)) {
        return tables_at(hooks, needs);
    }
    return tables_at(hooks, needs) +
           hfn_unwind_max_bytes(needs->stub_count, needs->key_changes, needs->cfi_bytes) + 7;
}

static uint64_t write_call_gate(hfn_region_writer *writer, uint32_t (*emit)(uint8_t *out),
                                uint32_t room)
{
    uint8_t cfi[HFN_STUB_GATE_CFI_MAX];
    uint64_t at = writer->at;
    uint32_t bytes = emit((uint8_t *)(uintptr_t)at);

    if (writer->tables != 0) {
        hfn_unwind_code(&writer->unwind, writer->at, bytes, cfi,
                        hfn_stub_write_call_gate_cfi(cfi, bytes));
    }
    writer->at += room;
    return at;
}

static void write_count_gate(hfn_region_writer *writer)
{
    uint64_t slow_path = (uint64_t)(uintptr_t)writer->hooks->access.slow_path;
    uint32_t bytes = hfn_stub_emit_count_gate((uint8_t *)(uintptr_t)writer->at, slow_path);

    writer->gates.count = writer->at;
    if (writer->tables != 0) {
        hfn_unwind_code(&writer->unwind, writer->at, bytes, NULL, 0);
    }
    writer->at += HFN_STUB_COUNT_GATE_ROOM;
}

static uint64_t write_time_gate(hfn_region_writer *writer, void (*target)(void))
{
    uint64_t at = writer->at;
    uint32_t bytes = hfn_stub_emit_time_gate((uint8_t *)(uintptr_t)at, (uint64_t)(uintptr_t)target);

    if (writer->tables != 0) {
        hfn_unwind_code(&writer->unwind, at, bytes, NULL, 0);
    }
    writer->at += HFN_STUB_TIME_GATE_ROOM;
    return at;
}

void hfn_region_begin(hfn_region_writer *writer, const hotfn_hooks *hooks,
                      const hfn_region_needs *needs, uint64_t code, uint64_t pages_end)
{
    memset(writer, 0, sizeof *writer);
    writer->hooks = hooks;
    writer->code = writer->at = code;
    writer->pages_end = pages_end;
    if (wants_unwind(hooks)) {
        writer->tables = (code + tables_at(hooks, needs) + 7) & ~UINT64_C(7);
        hfn_unwind_begin(&writer->unwind, (uint8_t *)(uintptr_t)writer->tables, needs->stub_count,
                         needs->key_changes, hooks->access.personality);
    }
    writer->gates.count_shared = hooks->count_shared;
    writer->gates.row_in_gs = hooks->row_in_gs;
    write_count_gate(writer);
    if (hfn_hooks_can_time(hooks)) {
        writer->gates.time_enter = write_time_gate(writer, hooks->access.time_enter);
        writer->gates.time_exit = write_time_gate(writer, hooks->access.time_exit);
    }
    if (needs->calls) {
        writer->gates.call =
            write_call_gate(writer, hfn_stub_emit_call_gate, HFN_STUB_CALL_GATE_ROOM);
        writer->gates.filter =
            write_call_gate(writer, hfn_stub_emit_filter_gate, HFN_STUB_FILTER_GATE_ROOM);
    }
}

bool hfn_region_stub(hfn_region_writer *writer, const hfn_plan_hook *hook,
                     const hfn_stub_shape *shape, uint64_t base, const hotfn_hook_action *action)
{
    uint64_t address = writer->at;
    uint32_t bytes = shape->head_bytes + hook->moved_bytes;

    writer->at += bytes;
    if (writer->tables != 0) {
        hfn_unwind_stub(&writer->unwind, address, bytes, shape, hook, base);
    }
    return hfn_trampoline_write((uint8_t *)(uintptr_t)address, address, hook, shape, base, action,
                                &writer->hooks->access, &writer->gates);
}

bool hfn_region_finish(hfn_region_writer *writer, hotfn_stub_region *region, uint64_t *unwind_bytes)
{
    uint64_t used_end;

    *region = (hotfn_stub_region)HOTFN_STUB_REGION_INIT;
    region->begin = writer->code;
    region->end = writer->at;
    *unwind_bytes = writer->tables != 0 ? hfn_unwind_finish(&writer->unwind, region) : 0;
    used_end = page_up(writer->tables != 0 ? writer->tables + *unwind_bytes : writer->at);
    if (!hfn_space_make_executable(writer->hooks, page_down(writer->code),
                                   used_end - page_down(writer->code))) {
        return false;
    }
    if (used_end < writer->pages_end) {
        hfn_space_unmap(writer->hooks, used_end, writer->pages_end - used_end);
    }
    if (writer->tables != 0 && (hfn_unwind_needs_registration() ||
                                (writer->hooks->options.flags & HOTFN_HOOKS_REGISTER_UNWIND))) {
        hfn_unwind_register(region);
    }
    return true;
}

hfn_gates hfn_region_gates(const hotfn_hooks *hooks, const hotfn_stub_region *region)
{
    uint64_t begin = region->begin, times = begin + HFN_STUB_COUNT_GATE_ROOM;

    return (hfn_gates){
        .count = begin,
        .call = begin + call_gate_at(hooks),
        .filter = begin + call_gate_at(hooks) + HFN_STUB_CALL_GATE_ROOM,
        .count_shared = hooks->count_shared,
        .row_in_gs = hooks->row_in_gs,
        .time_enter = times,
        .time_exit = times + HFN_STUB_TIME_GATE_ROOM,
    };
}
