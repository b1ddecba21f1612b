/* SPDX-License-Identifier: MIT */
/* Opens any bytes as an ELF image and makes every query that the later folders make. */
#include "image/image.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void visit(void *user, uint64_t rva)
{
    *(uint64_t *)user += rva;
}

static void query_sections(const hotfn_image *image, uint64_t *sum)
{
    for (uint32_t i = 0; i < hotfn_image_get_section_count(image); i++) {
        hotfn_section section = HOTFN_SECTION_INIT;
        uint64_t count = 0;
        hotfn_image_get_section(image, i, &section);
        const uint8_t *bytes = hotfn_image_get_bytes(image, section.rva, &count);
        if (count > 0) {
            *sum += bytes[0] + (uint64_t)bytes[count - 1] + strlen(section.name);
        }
        *sum += hfn_image_is_code(image, section.rva) + hfn_image_section_of(image, section.rva);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hotfn_image_info info = HOTFN_IMAGE_INFO_INIT;
    hotfn_error err = HOTFN_ERROR_INIT;
    hotfn_image *image = NULL;
    uint64_t sum = 0;

    if (hotfn_image_open_bytes(&image, data, size, "fuzz", NULL, &err) != HOTFN_OK) {
        if (image || !err.text[0]) {
            abort(); /* a failure stores no image and sets the error's text */
        }
        return 0;
    }
    hotfn_image_get_info(image, &info);
    if (info.interpreter) {
        sum += strlen(info.interpreter);
    }
    query_sections(image, &sum);
    hfn_image_each_pointer(image, visit, &sum);
    hfn_image_each_resolver(image, visit, &sum);
    sum += hfn_elf_dynamic_symbol_count(image);
    hotfn_image_close(image);
    return sum == UINT64_MAX ? -1 : 0; /* uses the sum, so that no query is optimised away */
}
