/* SPDX-License-Identifier: MIT */
/* Opens any bytes as a PE image and makes every query that exists only for PE images.  The first
 * two bytes are set to "MZ". */
#include "image/pe.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void visit(void *user, uint64_t rva)
{
    *(uint64_t *)user += rva;
}

static void visit_field(void *user, uint64_t rva, uint32_t byte_count)
{
    if (byte_count == 0 || byte_count > 8) {
        abort();
    }
    *(uint64_t *)user += rva;
}

static void ask_sections(const hotfn_image *image, uint64_t *sum)
{
    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        hotfn_section section = HOTFN_SECTION_INIT;
        uint64_t count = 0;
        hotfn_image_get_section(image, i, &section);
        const uint8_t *bytes = hotfn_image_get_bytes(image, section.rva, &count);
        if (count > 0) {
            *sum += bytes[0] + (uint64_t)bytes[count - 1] + strlen(section.name);
        }
    }
}

static void ask(const hotfn_image *image, uint64_t *sum)
{
    hfn_pe_pdb pdb;
    uint64_t rva;

    for (uint32_t i = 0; i < HFN_PE_DIRECTORIES; i++) {
        hfn_span s = hfn_pe_directory(image, i, &rva);
        *sum += s.size ? s.data[s.size - 1] : 0;
    }
    if (hfn_pe_pdb_of(image, &pdb)) {
        *sum += strlen(pdb.path) + pdb.age;
    }
    hfn_image_each_pointer(image, visit, sum);
    hfn_pe_each_relocated(image, visit_field, sum);
    hfn_pe_each_tls_callback(image, visit, sum);
    hfn_pe_each_guard_function(image, visit, sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;
    uint64_t sum = 0;
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy || size < 2) {
        goto done;
    }
    memcpy(copy, data, size);
    memcpy(copy, "MZ", 2);
    if (hotfn_image_open_bytes(&image, copy, size, "fuzz", NULL, &err) != HOTFN_OK) {
        if (image || !err.text[0] || err.offset == HOTFN_NO_OFFSET) {
            abort(); /* a failure stores no image and sets the error's text and offset */
        }
        goto done;
    }
    ask_sections(image, &sum);
    ask(image, &sum);
    hotfn_image_close(image);
done:
    free(copy);
    return sum == UINT64_MAX ? -1 : 0; /* uses the sum, so that no query is optimised away */
}
