/* SPDX-License-Identifier: MIT */
/* Evidence that code sets thread pointers, on each CPU. */
#include "arch/arch.h"
#include "check.h"

/* All evidence of the code, decoded from its first byte. */
static uint32_t find_evidence(const hfn_arch *arch, const char *code, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)code;
    uint32_t found = 0;
    hfn_instruction in;

    for (size_t at = 0; at < size; at += in.length) {
        if (!CHECK(arch->decode(bytes + at, size - at, at, 0, &in))) {
            break;
        }
        if (in.is_system || (in.takes_address && in.relative_bytes == 0)) {
            found |= arch->find_thread_evidence(bytes, size, at, &in);
        }
    }
    return found;
}
#define FIND_64(code) find_evidence(&hfn_arch_x86_64, "\x90" code, sizeof(code))
#define FIND_32(code) find_evidence(&hfn_arch_x86, "\x90" code, sizeof(code))
#define FIND_ARM(code) find_evidence(&hfn_arch_arm64, code, sizeof(code) - 1)

static void system_calls_that_set_thread_pointers_are_found(void)
{
    CHECK_EQ_U64(FIND_64("\xBF\x02\x10\0\0\xB8\x9E\0\0\0\x0F\x05"), HFN_THREAD_POINTER_SET);
    CHECK_EQ_U64(FIND_64("\xBF\x03\x10\0\0\xB8\x9E\0\0\0\x0F\x05"), 0);    /* ARCH_GET_FS */
    CHECK_EQ_U64(FIND_64("\xF3\x48\x0F\xAE\xD7"), HFN_THREAD_POINTER_SET); /* wrfsbase rdi */
    CHECK_EQ_U64(FIND_64("\xBE\x02\x10\0\0\xBF\x9E\0\0\0\xE8\0\0\0\0"), HFN_THREAD_BY_NUMBER);
    CHECK_EQ_U64(FIND_32("\xB8\xF3\0\0\0\xCD\x80"), HFN_THREAD_POINTER_SET); /* set_thread_area */
    CHECK_EQ_U64(FIND_32("\xB8\xF3\0\0\0\x65\xFF\x15\x10\0\0\0"), HFN_THREAD_POINTER_SET);
    CHECK_EQ_U64(FIND_32("\xB8\x04\0\0\0\xCD\x80"), 0);
    CHECK_EQ_U64(FIND_ARM("\x40\xD0\x1B\xD5"), HFN_THREAD_POINTER_SET); /* msr tpidr_el0, x0 */
    CHECK_EQ_U64(FIND_ARM("\x40\xD0\x3B\xD5"), 0);                      /* mrs x0, tpidr_el0 */
}

static void threads_with_a_block_are_found(void)
{
    uint32_t made = HFN_THREAD_MADE, both = HFN_THREAD_MADE | HFN_THREAD_FLAGS;

    CHECK_EQ_U64(FIND_64("\xBF\x00\x0F\x3D\x00\xB8\x38\0\0\0\x0F\x05"), both); /* clone */
    CHECK_EQ_U64(FIND_64("\xBF\x00\x0F\x3D\x00\x6A\x38\x58\x0F\x05"), both);   /* push; pop rax */
    CHECK_EQ_U64(FIND_64("\x48\xC7\xC0\xB3\x01\0\0\x0F\x05"), made);           /* clone3 */
    CHECK_EQ_U64(FIND_64("\xBF\x11\x00\x00\x00\xB8\x38\0\0\0\x0F\x05"), made); /* as fork */
    CHECK_EQ_U64(FIND_64("\xBA\x00\x0F\x3D\x00\xE8\0\0\0\0"), HFN_THREAD_FLAGS);
    CHECK_EQ_U64(FIND_64("\xB8\x39\0\0\0\x0F\x05"), 0); /* fork */
    CHECK_EQ_U64(FIND_32("\xBB\x00\x0F\x3D\x00\xB8\x78\0\0\0\xCD\x80"), both);
    CHECK_EQ_U64(FIND_ARM("\x88\x1B\x80\xD2\x01\x00\x00\xD4"), both); /* mov x8, 220; svc */
    CHECK_EQ_U64(FIND_ARM("\x08\x08\x80\xD2\x01\x00\x00\xD4"), 0);    /* write */
}

static const check_test tests[] = {
    CHECK_TEST(system_calls_that_set_thread_pointers_are_found),
    CHECK_TEST(threads_with_a_block_are_found),
};
CHECK_MAIN(tests)
