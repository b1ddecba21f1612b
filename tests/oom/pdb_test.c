/* SPDX-License-Identifier: MIT */
/* A PDB and its lines are read.  A look-up that failed for lack of memory succeeds when it is
 * repeated. */
#include "each_failure.h"
#include "symbols/pdb_builder.h"

#include <hotfn/lowlevel/symbols.h>

/* A PDB with names that cross blocks, unsorted lines, trampolines, and OMAP if requested. */
static pdb_builder *build(bool with_omap)
{
    static const uint32_t mixed[] = { 8, 13, 0, 10, 4, 11 };
    pdb_builder *b = pdb_begin(512);
    char name[200];

    b->scattered = true;
    for (uint32_t i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "%0150u", i);
        procedure(b, MODULE_2, 0x1110, name, 0x300 + 16 * i, 16);
    }
    trampoline(b, 0x0a, 0x300);
    put_everything(b);
    lines(b, 0x300, 16, mixed, 3);
    if (with_omap) {
        omap(b, 0x1000, 0x1000);
        put_32(b, OMAP_TO, 0x1000);
        put_32(b, OMAP_TO, 0x1000);
    }
    pdb_finish(b);
    return b;
}

static hotfn_status ask(hotfn_symbols *symbols, uint64_t rva, uint32_t wanted)
{
    hotfn_source_line line = HOTFN_SOURCE_LINE_INIT;
    hotfn_status status = hotfn_symbols_find_line(symbols, rva, &line);

    if (status == HOTFN_E_NO_MEMORY) { /* the look-up is repeated */
        status = hotfn_symbols_find_line(symbols, rva, &line);
    }
    CHECK(status == HOTFN_OK || status == HOTFN_E_NO_MEMORY);
    if (status == HOTFN_OK) {
        CHECK_EQ_U64(line.line, wanted);
    }
    return status;
}

static hotfn_status walk(const void *user, const hotfn_env *env, hotfn_error *err)
{
    const pdb_builder *b = user;
    hotfn_symbols_options options = HOTFN_SYMBOLS_OPTIONS_INIT;
    hotfn_symbols *symbols = NULL;
    hotfn_status status;

    options.flags = HOTFN_SYMBOLS_DATA;
    status = hotfn_symbols_pdb_from_bytes(&symbols, b->file, b->file_bytes, "oom.pdb", NULL,
                                          &options, env, err);
    CHECK((status == HOTFN_OK) == (symbols != NULL));
    CHECK_EQ_I64(err->status, status);
    if (status == HOTFN_OK) {
        status = ask(symbols, 0x1024, 11);
    }
    if (status == HOTFN_OK) {
        status = ask(symbols, 0x1300, 10);
    }
    err->status = status; /* hotfn_symbols_find_line has no err */
    hotfn_symbols_destroy(symbols);
    return status;
}

static void pdbs_survive_every_failure(void)
{
    for (int with_omap = 0; with_omap < 2; with_omap++) {
        pdb_builder *b = build(with_omap);
        fail_each_request(walk, b, 20);
        pdb_free(b);
    }
}

static const check_test tests[] = {
    CHECK_TEST(pdbs_survive_every_failure),
};
CHECK_MAIN(tests)
