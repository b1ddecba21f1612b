/* SPDX-License-Identifier: MIT */
/*
 * The import list of a suspended process (PE format, "The .idata section").  The new list and what
 * it names lie in new pages above the image, because an RVA is an unsigned distance of 32 bits:
 *
 *     library's descriptor | old descriptors | lookup table | address table | library's path
 */
#include "os/windows/import_list.h"

#include <string.h>

enum { ORDINAL = 1, MAX_LIST_BYTES = 1 << 20, TABLE_ENTRIES = 2 };
#define REACH_BYTES (UINT64_C(1) << 32)

/* The image in the process: where it is, and the fields of its headers that are needed. */
typedef struct target_image {
    HANDLE process;
    uint64_t base, directory_at; /* address of the import directory entry  */
    uint64_t bound_at;           /* of the bound imports' entry            */
    uint32_t list_rva, list_bytes, image_bytes;
    uint32_t word_bytes; /* 4 or 8 */
} target_image;

static bool read_bytes(HANDLE process, uint64_t address, void *out, size_t byte_count)
{
    SIZE_T done = 0;

    return ReadProcessMemory(process, (const void *)(uintptr_t)address, out, byte_count, &done) &&
           done == byte_count;
}

static bool find_base(HANDLE process, uint64_t *base)
{
    enum { IMAGE_BASE_AT = 2 * sizeof(void *) }; /* PEB.ImageBaseAddress */
    PROCESS_BASIC_INFORMATION info;
    uintptr_t found;

    if (NtQueryInformationProcess(process, ProcessBasicInformation, &info, sizeof info, NULL) < 0 ||
        !read_bytes(process, (uint64_t)(uintptr_t)info.PebBaseAddress + IMAGE_BASE_AT, &found,
                    sizeof found)) {
        return false;
    }
    *base = found;
    return true;
}

static hfn_os_error open_image(target_image *image, HANDLE process)
{
    IMAGE_DOS_HEADER dos;
    IMAGE_NT_HEADERS headers; /* of the word size of this program */
    uint64_t at;

    image->process = process;
    if (!find_base(process, &image->base) || !read_bytes(process, image->base, &dos, sizeof dos) ||
        dos.e_magic != IMAGE_DOS_SIGNATURE ||
        !read_bytes(process, image->base + (uint32_t)dos.e_lfanew, &headers, sizeof headers) ||
        headers.Signature != IMAGE_NT_SIGNATURE ||
        headers.OptionalHeader.Magic != IMAGE_NT_OPTIONAL_HDR_MAGIC ||
        headers.OptionalHeader.NumberOfRvaAndSizes <= IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT) {
        return ERROR_EXE_MACHINE_TYPE_MISMATCH;
    }
    at = image->base + (uint32_t)dos.e_lfanew +
         offsetof(IMAGE_NT_HEADERS, OptionalHeader.DataDirectory);
    image->directory_at = at + IMAGE_DIRECTORY_ENTRY_IMPORT * sizeof(IMAGE_DATA_DIRECTORY);
    image->bound_at = at + IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT * sizeof(IMAGE_DATA_DIRECTORY);
    image->list_rva =
        headers.OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress;
    image->list_bytes = headers.OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].Size;
    image->image_bytes = headers.OptionalHeader.SizeOfImage;
    image->word_bytes = sizeof(void *);
    return 0;
}

/* Bytes of the old descriptors with the empty one at their end; the directory's size is often
 * larger. */
static uint32_t measure_list(const target_image *image)
{
    IMAGE_IMPORT_DESCRIPTOR one;
    uint32_t bytes = 0;

    if (image->list_rva == 0) {
        return sizeof one;
    }
    do {
        if (bytes >= MAX_LIST_BYTES ||
            !read_bytes(image->process, image->base + image->list_rva + bytes, &one, sizeof one)) {
            return 0;
        }
        bytes += sizeof one;
    } while (one.Name != 0 && one.FirstThunk != 0);
    return bytes;
}

static uint64_t allocate_above(const target_image *image, uint64_t byte_count)
{
    MEMORY_BASIC_INFORMATION info;
    uint64_t at = image->base + image->image_bytes;

    while (at - image->base < REACH_BYTES - HFN_VIEW_UNIT &&
           VirtualQueryEx(image->process, (void *)(uintptr_t)at, &info, sizeof info)) {
        uint64_t begin = (at + HFN_VIEW_UNIT - 1) & ~(HFN_VIEW_UNIT - 1);
        uint64_t end = (uint64_t)(uintptr_t)info.BaseAddress + info.RegionSize;

        if (info.State == MEM_FREE && begin + byte_count <= end &&
            VirtualAllocEx(image->process, (void *)(uintptr_t)begin, (SIZE_T)byte_count,
                           MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE)) {
            return begin;
        }
        at = end;
    }
    return 0;
}

static bool write_header(const target_image *image, uint64_t address, const void *bytes,
                         size_t byte_count)
{
    void *at = (void *)(uintptr_t)address;
    DWORD before;
    SIZE_T done = 0;

    if (!VirtualProtectEx(image->process, at, byte_count, PAGE_READWRITE, &before)) {
        return false;
    }
    WriteProcessMemory(image->process, at, bytes, byte_count, &done);
    VirtualProtectEx(image->process, at, byte_count, before, &before);
    return done == byte_count;
}

/* Fill in the block that will lie at rva; list_bytes are those of the old descriptors. */
static void fill_block(uint8_t *block, uint32_t rva, uint32_t list_bytes, const char *library,
                       const target_image *image)
{
    uint32_t tables = (uint32_t)(sizeof(IMAGE_IMPORT_DESCRIPTOR) + list_bytes + 15) & ~15u;
    uint32_t table_bytes = TABLE_ENTRIES * image->word_bytes;
    uintptr_t entry = ((uintptr_t)1 << (8 * image->word_bytes - 1)) | ORDINAL;
    IMAGE_IMPORT_DESCRIPTOR own = { .FirstThunk = rva + tables + table_bytes,
                                    .Name = rva + tables + 2 * table_bytes };

    own.OriginalFirstThunk = rva + tables;
    memcpy(block, &own, sizeof own);
    memcpy(block + tables, &entry, image->word_bytes);
    memcpy(block + tables + table_bytes, &entry, image->word_bytes);
    memcpy(block + tables + 2 * table_bytes, library, strlen(library) + 1);
}

static hfn_os_error write_list(const target_image *image, const char *library, uint32_t list_bytes,
                               uint32_t *rva)
{
    uint64_t bytes = sizeof(IMAGE_IMPORT_DESCRIPTOR) + list_bytes + 16 +
                     2 * TABLE_ENTRIES * (uint64_t)image->word_bytes + strlen(library) + 1;
    uint8_t *block = VirtualAlloc(NULL, (SIZE_T)bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    uint64_t at = block ? allocate_above(image, bytes) : 0;
    hfn_os_error error = ERROR_NOT_ENOUGH_MEMORY;
    SIZE_T done = 0;

    if (at != 0) {
        *rva = (uint32_t)(at - image->base);
        if (image->list_rva != 0) {
            read_bytes(image->process, image->base + image->list_rva,
                       block + sizeof(IMAGE_IMPORT_DESCRIPTOR), list_bytes);
        }
        fill_block(block, *rva, list_bytes, library, image);
        error =
            WriteProcessMemory(image->process, (void *)(uintptr_t)at, block, (SIZE_T)bytes, &done)
                ? 0
                : hfn_get_last_error();
    }
    if (block) {
        VirtualFree(block, 0, MEM_RELEASE);
    }
    return error;
}

static bool keep_header(hfn_changed_headers *headers, int index, const target_image *image,
                        uint64_t address)
{
    headers->address[index] = address;
    headers->byte_count[index] = sizeof(IMAGE_DATA_DIRECTORY);
    return read_bytes(image->process, address, headers->original[index],
                      sizeof(IMAGE_DATA_DIRECTORY));
}

hfn_os_error hfn_import_first(HANDLE process, const char *library, hfn_changed_headers *headers)
{
    IMAGE_DATA_DIRECTORY list, none = { 0, 0 };
    target_image image;
    uint32_t list_bytes, rva = 0;
    hfn_os_error error = open_image(&image, process);

    if (error != 0) {
        return error;
    }
    list_bytes = measure_list(&image);
    if (list_bytes == 0 || !keep_header(headers, 0, &image, image.directory_at) ||
        !keep_header(headers, 1, &image, image.bound_at)) {
        return ERROR_BAD_EXE_FORMAT;
    }
    error = write_list(&image, library, list_bytes, &rva);
    if (error != 0) {
        return error;
    }
    list = (IMAGE_DATA_DIRECTORY){ rva, (DWORD)sizeof(IMAGE_IMPORT_DESCRIPTOR) + list_bytes };
    if (!write_header(&image, image.directory_at, &list, sizeof list) ||
        !write_header(&image, image.bound_at, &none, sizeof none)) {
        return hfn_get_last_error();
    }
    return 0;
}
